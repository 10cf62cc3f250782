"""What is typed and said in the recorded session: the script of the play.

Data only.  The user's texts, the assistant's thoughts, texts and tool calls, and
the text of the compaction summary are written here by hand.  No tool output is:
``record_session.py`` runs every call and writes down what came back.  ``expect``
is a piece of text which the real output of a command must hold, or recording stops.
"""

from script_words import END, FULL, ROOT, Entry, bash, call, edit, read, step, todo, user, write

TURNS: list[Entry] = [
    {"kind": "command", "name": "/clear"},
    # ---------------------------------------------------------------- the task
    user(
        "Some customers of the shop pay a cent too much or too little, and the test suite is red. "
        "Find out why and get the suite green.\n\n"
        "Do not change the public API of cart.py. "
        "The tests say what the shop wants: fix the code, not the tests.",
        0.4,
    ),
    step(
        todo(
            ("in_progress", "Run the suite and see what fails"),
            ("pending", "Find the cause of each failure"),
            ("pending", "Fix the code, with the public API of cart.py as it is"),
            ("pending", "Run the whole suite again"),
        ),
        think="A red suite and wrong cents. First see what fails, before I have an opinion about rounding. "
        "The public API of cart.py must stay as it is, and the tests are the requirement.",
        say="I start with the state of the repository and a run of the whole suite.",
    ),
    step(
        bash(
            "git log --oneline && git status --short && ls",
            "State of the repository",
            "config.toml",
        )
    ),
    step(call("Glob", pattern="**/*.py")),
    step(bash(FULL, "Run the whole suite", "9 failed, 16 passed"), seconds=30),
    step(
        read("shopcart/pricing.py"),
        read("shopcart/cart.py"),
        read("config.toml", "timeout = 10"),
        think="Nine failures, in three groups: half cents, quantity of an article added twice, "
        "tax on the undiscounted amount. I read the three files together.",
        say="9 of 25 fail. I read the code which they share.",
    ),
    step(read("README.md", "rounding.py")),
    step(
        read("shopcart/rounding.py", "File does not exist"),
        say="The README says that the rounding rules are in `shopcart/rounding.py`.",
    ),
    step(
        call("Grep", pattern="round_money|quantize", path=ROOT, output_mode="content", glob="*.py"),
        say="There is no such file; the README is out of date. Where is rounding done, then?",
    ),
    step(
        bash(
            "python -m pytest tests/test_pricing.py -q",
            "Run the pricing tests",
            "5 failed, 6 passed",
        ),
        seconds=45,
    ),
    step(read("tests/test_pricing.py")),
    step(
        bash(
            'python -m pytest -q -k "half_cent and 1.005"',
            "Run one test",
            "1 failed, 24 deselected",
        ),
        think="quantize without a rounding argument uses the rounding of the context, which is half to even. "
        "If that is it, 1.005 gives 1.00 and not 1.01.",
        say="One case alone, to see the two numbers.",
    ),
    step(
        edit(
            "shopcart/pricing.py",
            "    return amount.quantize(CENT)\n",
            "    return round(float(amount) + 1e-9, 2)\n",
        ),
        think="Half to even it is. Quick try: go through float and let round() do it, with a small nudge.",
        say="`quantize` rounds half to even here. I try a rewrite of the rounding with floats.",
    ),
    {
        "kind": "queue",
        "text": "No floats for money, please. Prices stay Decimal everywhere.",
    },
    step(
        bash(f"{FULL} 2>&1 | tail -5", "Run the suite, last lines", "17 failed, 8 passed"),
        seconds=60,
    ),
    user("No floats for money, please. Prices stay Decimal everywhere.", 0.1, queued=True),
    step(
        bash("git diff shopcart/pricing.py", "See the change", "1e-9"),
        think="The user is right and the tests say so as well: it got worse, because float and Decimal "
        "do not mix in the cart. Give this way up: take the file back and use the decimal module's own rounding.",
        say="That made it worse: floats do not mix with the Decimals of the cart. "
        "I give this way up and take the file back.",
    ),
    step(bash("git checkout -- shopcart/pricing.py && git status --short", "Take the file back")),
    step(
        bash(f"{FULL} 2>&1 | tail -5", "Back at the first state?", "9 failed, 16 passed"),
        seconds=40,
    ),
    step(
        edit(
            "shopcart/pricing.py",
            "    return amount.quantize(CENT, rounding=ROUND_HALF_EVEN)\n",
            "    return amount.quantize(CENT, rounding=ROUND_HALF_UP)\n",
            expect="String to replace not found",
        ),
        say="Back at 9 failures. Now the rounding mode of `decimal` itself.",
    ),
    step(
        read(
            "shopcart/pricing.py",
            reminder="The to-do list has not been touched for some time. Ignore this if it does not matter.",
        ),
        say="That line is not in the file as I remembered it. I read the file again.",
    ),
    step(
        edit(
            "shopcart/pricing.py",
            "from decimal import Decimal\n",
            "from decimal import ROUND_HALF_UP, Decimal\n",
        )
    ),
    step(
        edit(
            "shopcart/pricing.py",
            "    return amount.quantize(CENT)\n",
            "    return amount.quantize(CENT, rounding=ROUND_HALF_UP)\n",
        )
    ),
    step(
        bash("python -m pytest tests/test_pricing.py -q", "Run the pricing tests", "11 passed"),
        seconds=20,
    ),
    step(
        bash(FULL, "Run the whole suite", "4 failed, 21 passed"),
        say="Pricing is green. The rest of the suite:",
    ),
    step(
        {
            "name": "Task",
            "input": {
                "description": "Find all uses of tax_on",
                "prompt": "In /tmp/shopcart, find every place which calls tax_on or reads Cart.tax(). "
                "Report the file, the line and the amount which is taxed. Change nothing.",
                "subagent_type": "Explore",
            },
            "expect": "",
            "reminder": "",
            "sub": [
                step(
                    call(
                        "Grep",
                        pattern=r"tax_on|\.tax\(\)",
                        path=ROOT,
                        output_mode="content",
                        glob="*.py",
                    ),
                    say="I search for both names.",
                ),
            ],
            "answer": "tax_on is called once outside the tests: Cart.tax in shopcart/cart.py, with the subtotal. "
            "Cart.tax() is read by Cart.total and by the receipt. No caller passes the discounted amount.",
        },
        think="Four left: quantity, and tax before the discount. Before I change the taxed amount, "
        "I want to know who else depends on it.",
        say="Who else uses the tax? A search by a sub-agent, before I change it.",
    ),
    step(
        edit(
            "shopcart/cart.py",
            "        self._lines[sku] = Line(sku, price, quantity)\n",
            "        before = self._lines[sku].quantity if sku in self._lines else 0\n"
            "        self._lines[sku] = Line(sku, price, before + quantity)\n",
        ),
        say="Only `Cart.tax` decides. Both changes are inside methods; no name or signature changes.",
    ),
    step(
        edit(
            "shopcart/cart.py",
            '        """The tax on the order."""\n        return pricing.tax_on(self.subtotal(), self._settings)\n',
            '        """The tax on the order, after discounts."""\n'
            "        return pricing.tax_on(self.subtotal() - self.discount(), self._settings)\n",
        )
    ),
    step(bash(FULL, "Run the whole suite", "25 passed"), seconds=25),
    step(
        bash(
            'git switch -q -c fix/totals && git commit -q -am "Round half cents up, tax after discounts" '
            "&& git log --oneline && git diff --stat main",
            "Commit on a branch",
            "2 files changed",
        ),
        todo(
            ("completed", "Run the suite and see what fails"),
            ("completed", "Find the cause of each failure"),
            ("completed", "Fix the code, with the public API of cart.py as it is"),
            ("completed", "Run the whole suite again"),
        ),
    ),
    step(
        say="The suite is green: 25 passed. There were three causes:\n\n"
        "- half cents were rounded to even; now they are rounded up, in Decimal;\n"
        "- a second `add` of an article replaced its quantity; now it adds to it;\n"
        "- tax was taken before the discount; now after.\n\n"
        "The public API of cart.py is unchanged. It is committed on `fix/totals`."
    ),
    END,
    # ---------------------------------------------------- a value: 30 seconds
    user(
        "Good. Next: the price client gives up too early. The timeout must be 30 seconds, in config.toml, "
        "and the client has to use the configured value. "
        "When the setting is missing the default must be 30 seconds as well. Write tests for it.",
        34,
    ),
    step(
        call("Grep", pattern="timeout", path=ROOT, output_mode="content"),
        read("shopcart/client.py", "timeout: int = 10"),
        say="Where does the timeout come from now?",
    ),
    step(
        edit("config.toml", "timeout = 10\n", "timeout = 30\n"),
        think="The client has its own 10 and never looks at the settings. So three places: config.toml, "
        "a default in config.py, the client. Tests first for the last two.",
        say="The client has a 10 of its own and does not look at the settings. First the configuration.",
    ),
    step(
        write(
            "tests/test_timeout.py",
            '"""The timeout of the price client: configured, with a default."""\n\n'
            "from shopcart.client import PriceClient\n"
            "from shopcart.config import DEFAULT_TIMEOUT, CONFIG_PATH, load_settings\n\n\n"
            "def test_configured_timeout():\n    assert load_settings().timeout == 30\n\n\n"
            "def test_default_timeout(tmp_path):\n"
            '    text = CONFIG_PATH.read_text(encoding="utf-8")\n'
            '    kept = [line for line in text.splitlines() if not line.startswith("timeout")]\n'
            '    path = tmp_path / "config.toml"\n'
            '    path.write_text("\\n".join(kept), encoding="utf-8")\n'
            "    assert load_settings(path).timeout == DEFAULT_TIMEOUT == 30\n\n\n"
            "def test_client_uses_the_configured_timeout(settings):\n"
            "    assert PriceClient(settings).timeout == settings.timeout == 5\n\n\n"
            "def test_deadline_counts_all_tries():\n    assert PriceClient().deadline() == 120\n",
        ),
        say="Now the tests.",
    ),
    step(bash(FULL, "Run the whole suite", "1 error"), seconds=30),
    step(
        edit(
            "shopcart/config.py",
            'CONFIG_PATH = Path(__file__).parent.parent / "config.toml"\n',
            'CONFIG_PATH = Path(__file__).parent.parent / "config.toml"\n'
            "DEFAULT_TIMEOUT = 30  # seconds, when config.toml names no timeout\n",
        ),
        say="As it should be at this point: the name does not exist yet, so the tests cannot even be collected.",
    ),
    step(
        edit(
            "shopcart/config.py",
            'timeout=int(server["timeout"]),\n',
            'timeout=int(server.get("timeout", DEFAULT_TIMEOUT)),\n',
        )
    ),
    step(
        bash(
            "python -m pytest tests/test_timeout.py -q --tb=short",
            "Run the new tests",
            "2 failed, 2 passed",
        )
    ),
    step(
        edit(
            "shopcart/client.py",
            "timeout: int = 10) -> None:\n        self.settings = settings or load_settings()\n"
            "        self.timeout = timeout\n",
            "timeout: int | None = None) -> None:\n        self.settings = settings or load_settings()\n"
            "        self.timeout = self.settings.timeout if timeout is None else timeout\n",
        ),
        say="The two which fail are those of the client.",
    ),
    step(bash(FULL, "Run the whole suite", "29 passed"), seconds=35),
    step(
        bash(
            'git add -A && git commit -q -m "Timeout of 30 seconds, used by the client" && git status --short',
            "Commit",
        )
    ),
    step(
        say="The timeout is 30 seconds: in config.toml, as `DEFAULT_TIMEOUT` in config.py, and the client uses it. "
        "29 passed; committed."
    ),
    END,
    # ------------------------------------------------------ a new requirement
    user(
        "A coupon must never give the shop away: all discounts together are at most half of the subtotal. "
        "Make the limit a setting, max_discount_percent. Tests first, please.",
        41,
    ),
    step(
        edit(
            "tests/test_cart.py",
            "def test_total_without_discount(settings):\n",
            "def test_discount_cap(settings):\n"
            "    cart = Cart(settings)\n"
            '    cart.add("desk", Decimal("200.00"))\n'
            '    cart.use_coupon(Decimal("80"))\n'
            '    assert cart.discount() == Decimal("100.00")\n'
            '    assert cart.total() == Decimal("119.00")\n\n\n'
            "def test_discount_cap_counts_bulk_and_coupon(settings):\n"
            "    cart = Cart(settings)\n"
            '    cart.add("pen", Decimal("1.49"), 10)\n'
            '    cart.use_coupon(Decimal("50"))\n'
            '    assert cart.discount() == Decimal("7.45")\n\n\n'
            "def test_total_without_discount(settings):\n",
        ),
        say="Tests first: one with a large coupon, one where bulk and coupon together go over the limit.",
    ),
    step(
        bash("python -m pytest -q -k cap", "Run the new tests", "2 failed, 29 deselected"),
        seconds=20,
    ),
    step(
        edit(
            "config.toml",
            'bulk_percent = "5"\n',
            'bulk_percent = "5"\nmax_discount_percent = "50"\n',
        ),
        edit(
            "shopcart/config.py",
            "    bulk_percent: Decimal\n",
            "    bulk_percent: Decimal\n    max_discount_percent: Decimal\n",
        ),
    ),
    step(
        edit(
            "shopcart/config.py",
            'bulk_percent=Decimal(prices["bulk_percent"]),\n',
            'bulk_percent=Decimal(prices["bulk_percent"]),\n'
            '            max_discount_percent=Decimal(prices["max_discount_percent"]),\n',
        )
    ),
    step(
        edit(
            "shopcart/cart.py",
            "        return bulk + coupon\n",
            "        cap = pricing.percent_of(self.subtotal(), self._settings.max_discount_percent)\n"
            "        return min(bulk + coupon, cap)\n",
        ),
        think="The cap goes into Cart.discount. It is a change inside the method, so the public API of cart.py stays.",
        say="The limit itself, inside `Cart.discount`: again no change of the API.",
    ),
    step(
        bash(
            f'{FULL} 2>&1 | grep -E "passed|failed"',
            "Run the suite, verdict only",
            "13 passed, 18 errors",
        )
    ),
    step(
        bash(
            "python -m pytest tests/test_cart.py -q --tb=line -x",
            "The first error alone",
            "max_discount_percent",
        ),
        say="18 errors, which is not about discounts: something in the fixtures.",
    ),
    step(
        edit(
            "tests/conftest.py",
            '        bulk_percent=Decimal("5"),\n',
            '        bulk_percent=Decimal("5"),\n        max_discount_percent=Decimal("50"),\n',
        ),
        say="The `settings` fixture builds `Settings` without the new field.",
    ),
    step(bash(FULL, "Run the whole suite", "31 passed"), seconds=30),
    step(
        bash(
            'git commit -q -am "Discounts are at most half of the subtotal" && git log --oneline',
            "Commit",
        )
    ),
    step(
        say="Discounts are now at most `max_discount_percent` (50) of the subtotal. 31 passed; committed. "
        "The `settings` fixture in tests/conftest.py got the new field; no test that was there before has changed."
    ),
    END,
    # ----------------------------------------------- the requirement changes
    user(
        "The load test says that 30 seconds is still too short. Make that 45 seconds: "
        "config.toml, the default, and the tests of the timeout.",
        52,
    ),
    step(
        call("Grep", pattern=r"\b(30|120)\b", path=ROOT, output_mode="content"),
        say="Every place where the old value stands, or something computed from it:",
    ),
    step(edit("config.toml", "timeout = 30\n", "timeout = 45\n")),
    step(bash(f"{FULL} --tb=short", "Run the whole suite", "2 failed, 29 passed"), seconds=20),
    {
        "kind": "compact",
        # Wrong on purpose about the present: see README.md.
        "summary": "This session is being continued from a previous conversation. What follows is a summary of it.\n\n"
        "Task: the user wanted correct totals in /tmp/shopcart and a green test suite.\n\n"
        "Work done:\n"
        "1. shopcart/pricing.py: half cents are rounded up with ROUND_HALF_UP.\n"
        "2. shopcart/cart.py: adding an article again adds to its quantity; tax is taken after discounts; "
        "discounts are limited by max_discount_percent.\n"
        "3. config.toml, shopcart/config.py, shopcart/client.py: the timeout of the price client.\n\n"
        "Present state:\n"
        "- The timeout is 30 seconds, in config.toml and as DEFAULT_TIMEOUT.\n"
        "- All 31 tests pass.\n"
        "- Everything is committed on the branch fix/totals.\n\n"
        "Open work: none. Wait for the next question of the user.",
    },
    step(
        bash("git status --short && git diff", "Is everything committed?", "+timeout = 45"),
        think="The summary says that all is done, green and at 30 seconds. That is a claim. "
        "I look at the files and run the suite.",
        say="The summary says that everything is green and committed. I look before I believe it.",
    ),
    step(bash(FULL, "Run the whole suite", "2 failed, 29 passed"), seconds=15),
    step(
        read("config.toml", "timeout = 45"),
        read("tests/test_timeout.py", "== 30"),
        say="It is not so: two tests fail, and the work is half done. "
        "config.toml already says 45; the tests and perhaps the default do not.",
    ),
    step(
        edit("shopcart/config.py", "DEFAULT_TIMEOUT = 30 ", "DEFAULT_TIMEOUT = 45 "),
        edit("tests/test_timeout.py", "== 30\n", "== 45\n", replace_all=True),
        edit("tests/test_timeout.py", "deadline() == 120\n", "deadline() == 180\n"),
        say="The default, and the tests: 45 seconds, and four tries of 45 seconds are 180.",
    ),
    step(bash("python -m pytest tests/test_timeout.py -q", "Run the timeout tests", "4 passed")),
    step(bash(FULL, "Run the whole suite", "31 passed"), seconds=25),
    step(bash('git commit -q -am "Timeout of 45 seconds" && git status --short', "Commit")),
    step(
        say="The timeout is 45 seconds now: config.toml, `DEFAULT_TIMEOUT` and the tests. 31 passed; committed."
    ),
    END,
    # ---------------------------------------------------- the final question
    user(
        "Before I merge: which timeout is in force, do all tests pass, and is the public API of cart.py unchanged?",
        27,
    ),
    step(
        bash(
            "grep -n timeout config.toml && grep -n DEFAULT_TIMEOUT shopcart/*.py",
            "The timeout",
            "timeout = 45",
        ),
        bash(
            'git diff main -- shopcart/cart.py | grep -E "^[-+] *(def|class) "',
            "Changed names in cart.py",
        ),
        bash(f"{FULL} 2>&1 | tail -3", "Run the suite, last lines", "31 passed"),
        say="I look once more, rather than answer from memory.",
    ),
    step(
        say="- Timeout: 45 seconds, in config.toml and as the default.\n"
        "- Tests: all 31 pass.\n"
        "- Public API of cart.py: unchanged. The difference to `main` holds no line with `def` or `class` "
        "(this is why grep ended with 1)."
    ),
    END,
]
