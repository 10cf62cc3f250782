"""What a command line and its output say of test runs, and what they do not."""

import pytest

from ef.reducers.observers.testruns import Run
from ef.reducers.observers.testruns import test_runs as judged

GREEN = "..........                                        [100%]\n10 passed in 0.12s\n"
RED = (
    "..F\n=================== FAILURES ===================\n____ test_a ____\n"
    "=========== short test summary info ============\n"
    "FAILED tests/test_a.py::test_a - assert 1 == 2\n"
    "========= 1 failed, 2 passed, 3 skipped in 0.12s =========\n"
)
OK = "?   \tex.org/m\t[no test files]\nok  \tex.org/m/a\t0.2s\nok  \tex.org/m/b\t(cached)\n"
BAD = (
    "ok  \tex.org/m/a\t0.2s\n--- FAIL: TestTop (0.00s)\n    --- FAIL: TestTop/sub (0.00s)\n"
    "        b_test.go:9: no\nFAIL\nFAIL\tex.org/m/b\t0.3s\nok  \tex.org/m/c\t(cached)\nFAIL\n"
)
ONE = "ok  \tex.org/m/a\t0.2s\n"
VERBOSE = (
    "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- SKIP: TestB (0.00s)\nPASS\n"
    + ONE
)


def runs(command: str, output: str, code: int | None = 0) -> list[tuple[str, str]]:
    return [(run.entity, run.verdict) for run in judged(command, output, exit_code=code)]


def one(command: str, output: str, code: int | None = 0) -> Run:
    (run,) = judged(command, output, exit_code=code)
    return run


def cited(run: Run, output: str) -> str:
    return output.encode("utf-8", "surrogatepass")[run.start : run.end].decode(
        "utf-8", "surrogatepass"
    )


# -- entities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "entity"),
    [
        ("pytest", "pytest"),
        ("pytest .", "pytest"),
        ("py.test -q -x -v --tb=short -n 4 --cov=src --cov-report term", "pytest"),
        ("pytest -xvs -n4 -rA -p no:cacheprovider --", "pytest"),
        ("python -m pytest -q", "pytest"),
        ("python3.12 -W error -u -m pytest", "pytest"),
        (".venv/bin/python -m pytest", "pytest"),
        ("uv run pytest -q", "pytest"),
        ("uv run --with x -m pytest", "pytest"),
        ("uv run --directory sub pytest", "pytest:--directory=sub"),
        ("uv run --project=sub pytest", "pytest:--project=sub"),
        ("poetry run python -m coverage run --source src -m pytest", "pytest"),
        ("coverage run -m pytest", "pytest"),
        ("env -u A X=1 timeout -k 5 60 time nice -n 3 pytest", "pytest:X=1"),
        ("sudo -u me pytest", "pytest"),
        ("CI=1 pytest", "pytest"),
        ("PYTEST_ADDOPTS='-k a' pytest", "pytest:'PYTEST_ADDOPTS=-k a'"),
        ("pytest tests/b.py ./tests/a.py", "pytest:tests/a.py tests/b.py"),
        ("pytest -k 'a and b' tests/", "pytest:tests -k='a and b'"),
        ("pytest -kfoo -m slow", "pytest:-k=foo -m=slow"),
        ("pytest --lf --deselect=a::b", "pytest:--deselect=a::b --lf"),
        ("pytest --cov -q", "pytest"),
        ("cd sub && pytest", "pytest:cd=sub"),
        ("cd . && pytest", "pytest"),
        ("cd && pytest", "pytest:cd='~'"),
        ("(cd sub && true); pytest", "pytest"),
        ("pushd sub; pytest -q", "pytest:cd=sub"),
        ("bash -c 'cd sub && pytest'", "pytest:cd=sub"),
        ("bash -lc \"pytest -k 'x'\"", "pytest:-k=x"),
        ("set -euo pipefail; pytest | tail -3", "pytest"),
        ("make test", "pytest"),
        ("make -s test", "pytest"),
        ("npm test", "pytest"),
        ("npm t", "pytest"),
        ("npm run test", "pytest"),
        ("npm run-script test", "pytest"),
        ("tox", "pytest:tox"),
        ("tox -e py312", "pytest:tox -e py312"),
        ("make lint test", "pytest:make lint test"),
        ("just test-unit", "pytest:just test-unit"),
        ("npm test -- -k foo", "pytest:npm test -- -k foo"),
        ("./scripts/test.sh", "pytest:scripts/test.sh"),
        ("bash scripts/run-tests.sh", "pytest:bash scripts/run-tests.sh"),
        ("bash -x scripts/a.sh; pytest", "pytest"),
        ("echo a#b # pytest -k no\npytest", "pytest"),
        ("cat > a.py <<'EOF'\npytest -k no\nEOF\npytest", "pytest"),
        ("echo 'a'#b; pytest", "pytest"),
        ("cat > a.py <<-EOF\n\tx\n\tEOF\npytest", "pytest"),
        ("echo \"$(date)\" \\\n > log; pytest 2>&1", "pytest"),
        ("echo `date` ${X} $'a\\n' \"a\\\"b\" 2>/dev/null >log; pytest", "pytest"),
        ("diff <(a) >(b) >log; pytest", "pytest"),
        ("true &&\npytest", "pytest"),
        ("pytest |\ntail -3", "pytest"),
        ("{ pytest; } 2>&1 | tail -3", "pytest"),
        ("git show HEAD --stat && sed -i s/a/b/ x && grep -q x y && pytest", "pytest"),
    ],
)  # fmt: skip
def test_a_green_summary_says_passed_of_the_scope(command: str, entity: str) -> None:
    assert runs(command, GREEN) == [(entity, "passed")]


@pytest.mark.parametrize(
    ("command", "entity"),
    [
        ("go test ./...", "go"),
        ("go test -race -count=1 -v ./...", "go"),
        ("go test -count 1 -timeout 5m ./...", "go"),
        ("gotestsum", "go"),
        ("gotestsum --format testname -- -count=1 ./...", "go"),
        ("gotestsum -f dots --debug", "go"),
        ("gotestsum -f", "go"),
        ("gotestsum --format=dots ./a", "go:./a"),
        ("gotestsum --packages ./a -- -v", "go:./a"),
        ("go test", "go:."),
        ("go test ./a/", "go:./a"),
        ("go test ./b ./a -run 'TestA|B'", "go:./a ./b -run='TestA|B'"),
        ("go test -short -tags integration ./...", "go:-short -tags=integration"),
        ("go test ./... -args -x", "go:-args=-x"),
        ("go test ./... -args", "go"),
        ("go -C sub test ./...", "go:cd=sub"),
        ("GOFLAGS=-run=X go test ./...", "go:GOFLAGS=-run=X"),
        ("mise run test", "go"),
        ("mise run test:integration", "go:mise run test:integration"),
        ("mise run fmt && mise run lint && mise run test 2>&1", "go"),
        ("nohup go test ./...", "go"),
        ("go test ./... | tee log", "go"),
        ("go test ./... | tail -3", "go"),
        ("go test ./... | head -50", "go"),
        ("go test ./... | head -n 50 | cat", "go"),
        ("go test ./... | grep -v 'no test files'", "go"),
        ("go test ./... | grep -v '\\[no test files\\]'", "go"),
        ("go test ./... | grep -E '^(ok|FAIL)'", "go"),
        ("go test ./... | grep -e ok -e FAIL", "go"),
        ("go test ./... | egrep 'ok|FAIL$'", "go"),
        ("go test ./... | grep -iE 'ok|fail'", "go"),
        ("go test ./... | grep 'ok\\|FAIL'", "go"),
        ("go test ./... | grep -wE 'ok|FAIL'", "go"),
        ("go test ./... > log 2>&1; tail -20 log", "go"),
        ("go test ./... > log; grep -E 'ok|FAIL' log", "go"),
        ("timeout 60 go test ./...", "go"),
    ],
)
def test_green_package_lines_say_passed_of_the_scope(command: str, entity: str) -> None:
    assert runs(command, OK) == [(entity, "passed")]


# -- refusals, each with a twin that is judged ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "twin"),
    [
        ("cat log.txt", "pytest"),
        ("grep -rn pytest .", "pytest"),
        ("echo pytest", "pytest"),
        ("echo 'run pytest'", "bash -c 'pytest'"),
        ("git log --grep pytest", "true && pytest"),
        ("ls tests", "make test"),
        ("make build", "make test"),
        ("make -n test", "make test"),
        ("tox --list", "tox"),
        ("python script.py", "python -m pytest"),
        ("python -m mypy", "python -m pytest"),
        ("python -m", "python -m pytest"),
        ("pytest --collect-only", "pytest -q"),
        ("pytest -h", "pytest -v"),
        ("pytest &", "pytest"),
        ("pytest && true &", "pytest && true"),
        ("pytest | wc -l", "pytest | tail -1"),
        ("pytest | tail -f", "pytest | tail -1"),
        ("pytest | grep -c passed", "pytest | grep passed"),
        ("pytest | grep -o passed", "pytest | grep -E passed"),
        ("pytest | tail -1 > log", "pytest | tail -1"),
        ("pytest >&2", "pytest 2>&1"),
        ("pytest | { cat; }", "pytest | cat"),
        ("cat old.log; pytest", "cat < a > b; pytest"),
        ("echo \"$(cat old.log)\"; pytest", "echo now; pytest"),
        ("echo '1 passed in 1s'; pytest", "echo 'one passed'; pytest"),
        ("echo FAIL; pytest", "echo fails; pytest"),
        ("git show HEAD:log; pytest", "git show HEAD; pytest"),
        ("for i in 1 2; do pytest; done", "pytest"),
        ("if pytest; then echo; fi", "pytest"),
        ("f() { pytest; }; f", "{ pytest; }"),
        ("pytest 'a", "pytest 'a'"),
        ("pytest \"$(a \"(\")\"", "pytest \"$(a b)\""),
        ("echo $(a; pytest", "true $(a '(' \\( (b)); pytest"),
        ("(pytest", "(pytest)"),
        ("pytest >", "pytest 2>/dev/null"),
        ("| pytest", "true | pytest"),
        ("(pytest) x", "(pytest)"),
        ("(" * 40 + "pytest" + ")" * 40, "((pytest))"),
        ("true;" * 6000 + "pytest", "true;" * 60 + "pytest"),
        ("ls | xargs pytest", "ls | pytest"),
        ("pytest a; pytest b", "pytest a"),
        ("make test; pytest", "make lint; pytest"),
        ("pytest > f; pytest -q > f; cat f", "pytest > f; cat f"),
        ("pytest > f; cat f other.log", "pytest > f; cat -n f"),
    ],
)  # fmt: skip
def test_a_summary_is_claimed_only_for_a_visible_run(command: str, twin: str) -> None:
    assert runs(command, GREEN) == []
    assert [verdict for _, verdict in runs(twin, GREEN)] == ["passed"]


@pytest.mark.parametrize(
    ("command", "twin"),
    [
        ("go build ./...", "go test ./..."),
        ("go test -c ./...", "go test ./..."),
        ("go test -list . ./...", "go test -v ./..."),
        ("go test -run '^$' -bench . ./...", "go test -run 'A' ./..."),
        ("gotestsum -- -h", "gotestsum -- -v"),
        ("gotestsum --version", "gotestsum"),
        ("go test ./... | head -3", "go test ./... | head -30"),
        ("go test ./... | head -c 300", "go test ./... | head"),
        ("go test ./... | head -50 | tail -3", "go test ./... | tail -3"),
        ("go test ./... | grep ok", "go test ./... | grep -E 'ok|FAIL'"),
        ("go test ./... | grep -E 'ok|FAIL:'", "go test ./... | grep -E 'ok|^FAIL'"),
        ("go test ./... | grep -E 'ok|^AIL'", "go test ./... | grep -E 'ok|AIL$'"),
        ("go test ./... | grep -E 'a(ok|FAIL)b'", "go test ./... | grep -E '(ok|FAIL)$'"),
        ("go test ./... | grep -E 'a(b|(c)|FAIL|ok)'", "go test ./... | grep -E '(b)c|ok|FAIL'"),
        ("go test ./... | grep 'a\\(ok\\|FAIL\\|b\\)'", "go test ./... | grep 'ok\\|FAIL'"),
        ("go test ./... | grep 'ok|FAIL'", "go test ./... | grep -E 'ok|FAIL'"),
        ("go test ./... | grep -v FAIL", "go test ./... | grep -v PASS"),
        ("go test ./... | grep -v 'F.*'", "go test ./... | grep -v 'PASS'"),
        ("go test ./... | grep -wE 'ok|FAI'", "go test ./... | grep -E 'ok|FAI'"),
        ("go test ./... | grep -m 2 -E 'ok|FAIL'", "go test ./... | grep -E 'ok|FAIL'"),
        ("go test ./... | sort", "go test ./... | cat"),
        ("timeout 60 go test ./... | tail -5", "timeout 60 go test ./a | tail -5"),
        ("go test ./... > f; tail -1 f; grep x f", "go test ./... > f; tail f"),
        ("mise run test && mise run test:unit", "mise run lint && mise run test:unit"),
    ],
)
def test_green_packages_are_claimed_only_where_a_failure_would_show(
    command: str, twin: str
) -> None:
    assert runs(command, OK) == []
    assert [verdict for _, verdict in runs(twin, OK)] == ["passed"]


@pytest.mark.parametrize(
    ("output", "twin"),
    [
        ("no tests ran in 0.01s\n", "1 passed in 0.01s\n"),
        ("3 deselected in 0.01s\n", "1 passed, 3 deselected in 0.01s\n"),
        ("2 skipped in 0.01s\n", "1 passed, 2 skipped in 0.01s\n"),
        ("no tests ran, 1 warning in 0.01s\n", "1 xfailed in 0.01 seconds\n"),
        ("1 passed in no time\n", "1 passed in 61.2s (0:01:01)\n"),
        ("1 passed, more in 0.1s\n", "1 passed, 1 rerun in 0.1s\n"),
        ("99999999999 passed in 0.1s\n", "999 passed in 0.1s\n"),
        ("!!!!! KeyboardInterrupt !!!!!\n1 passed in 0.1s\n", "note\n1 passed in 0.1s\n"),
        ("Command timed out after 2m\n1 passed in 1s\n", "Command line\n1 passed in 1s\n"),
        ("<persisted-output>\n1 passed in 1s\n", "<output>\n1 passed in 1s\n"),
        ("", "1 passed, 1 warning in 0.1s"),
        ("... [ 50%]\n", "... [100%]\n"),
        (GREEN.replace("passed", "failed"), GREEN),
    ],
)
def test_pytest_must_have_run_something_to_the_end(output: str, twin: str) -> None:
    assert runs("pytest", output) == []
    assert runs("pytest", twin) == [("pytest", "passed")]


@pytest.mark.parametrize(
    ("output", "twin"),
    [
        ("?   \tex.org/m\t[no test files]\n", OK),
        (
            "ok  \tex.org/m\t0.1s [no tests to run]\n",
            "ok  \tex.org/m\t0.1s coverage: 9% of statements\n",
        ),
        ("FAIL\n" + OK, "FAILURE IS AN OPTION\n" + OK),
        (OK + "... [9 lines truncated] ...\n", "... [9 lines truncated] ...\n" + OK),
        (BAD, OK),
        ("--- FAIL: TestLogged (0.00s)\n" + OK, "--- PASS: TestLogged (0.00s)\n" + OK),
        ("DONE 0 tests in 0.1s\n", "DONE 2 tests, 1 skipped in 0.1s\n"),
        ("PASS\n", OK),
    ],
)
def test_go_must_have_run_something_without_contradiction(output: str, twin: str) -> None:
    assert runs("go test ./...", output) == []
    assert runs("go test ./...", twin) == [("go", "passed")]


def test_a_status_that_contradicts_the_lines_leaves_nothing_to_claim() -> None:
    assert runs("pytest", GREEN, 1) == [] and runs("pytest && mypy", GREEN, 1) == [
        ("pytest", "passed")
    ]
    assert runs("pytest", RED, 0) == [] and runs("pytest || true", RED, 0) == [("pytest", "failed")]
    assert runs("! pytest", RED, 0) == [("pytest", "failed")]
    assert runs("set -e; pytest; mypy", RED, 0) == [] and runs("pytest; mypy", RED) == [
        ("pytest", "failed")
    ]
    assert runs("set -e; set +e; pytest; mypy", RED, 0) == [("pytest", "failed")]
    assert runs("set -o pipefail; pytest | tail", RED, 0) == []
    assert runs("set -o pipefail; pytest | tail", GREEN, 1) == []
    assert runs("set -o pipefail; set +o pipefail; pytest | tail", GREEN, 1) == [
        ("pytest", "passed")
    ]
    assert runs("go test ./...", OK, None) == [] and runs("go test ./a", ONE, None) == [
        ("go:./a", "passed")
    ]
    assert judged("pytest", GREEN, exit_code=0, background=True) == ()


def test_a_task_that_says_that_it_failed_is_not_green() -> None:
    error = "[test] ERROR task failed\n"
    assert runs("mise run test | tail -9", OK + error) == []
    assert runs("mise run test | tail -9", OK + error.replace("test", "lint")) == [("go", "passed")]


# -- failures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "output", "rule"),
    [
        ("pytest", RED, "pytest/summary"),
        ("pytest", "ERROR a/t.py\n!!! Interrupted: 1 error during collection !!!\n1 error in 1s\n", "pytest/summary"),
        ("pytest", "1 subtests failed, 1 passed in 0.1s", "pytest/summary"),
        ("pytest | head -3", RED, "pytest/summary"),
        ("pytest | head -3", "== FAILURES ==\n", "pytest/failure-shown"),
        ("pytest | grep FAILED", "FAILED a/test_a.py::test_a\n", "pytest/failure-shown"),
        ("pytest -v | grep FAILED", "a/test_a.py::test_a FAILED [ 50%]\n", "pytest/failure-shown"),
        ("pytest", "Exit code 4\nImportError while loading conftest '/x/conftest.py'.\n", "pytest/conftest"),
        ("tox", GREEN + RED, "pytest/summary"),
        ("go test ./...", BAD, "go/fail-line"),
        ("go test ./...", "# m/a\na.go:1: no\nFAIL\tm/a [build failed]\nFAIL\n", "go/fail-line"),
        ("go test ./... | tail -1", "FAIL\n", "go/last-line"),
        ("go test ./... | grep -e '--- FAIL'", "--- FAIL: TestA (0.00s)\n", "go/fail-test"),
        ("go test ./... | sort", BAD, "go/fail-line"),
        ("gotestsum", "=== FAIL: m/a TestA (0.00s)\nDONE 3 tests, 1 failure in 0.5s\n", "go/done"),
        ("gotestsum", "DONE 0 tests, 1 error in 0.5s\n", "go/done"),
        ("pytest > /dev/null", "Exit code 1", "exit-status"),
        ("cd a && go test ./... &> log", "Exit code 1\n", "exit-status"),
        ("go test ./... > log", "", "exit-status"),
    ],
)  # fmt: skip
def test_a_failure_that_is_shown_is_claimed(command: str, output: str, rule: str) -> None:
    run = one(command, output, 1)
    assert (run.verdict, run.rule) == ("failed", rule)


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("pytest | head -3", "collected 9 items\n", 0),
        ("pytest > log", "Exit code 2", 2),
        ("pytest > log | tail", "", 0),
        ("make lint && pytest > log", "Exit code 1", 1),
        ("python -m pytest > log", "Exit code 1\nNo module named pytest\n", 1),
        ("go test ./... > log", "", 0),
        ("make test > log", "", 0),
        ("pytest > log; echo", "", 0),
        ("pytest", "Exit code 127\npytest: command not found\n", 127),
    ],
)
def test_what_hides_the_outcome_hides_the_verdict(command: str, output: str, code: int) -> None:
    assert runs(command, output, code) == []


def test_a_silent_pytest_passes_by_its_own_status_and_cites_no_bytes() -> None:
    run = one("pytest -q > /dev/null 2>&1 && true", "")
    assert (run.verdict, run.rule, run.start, run.end) == ("passed", "exit-status", 0, 0)


# -- counts, names and spans ------------------------------------------------------------------------------------


def test_counts_and_names_are_the_runners_own() -> None:
    run = one("pytest", RED, 1)
    assert (run.passed, run.failed, run.skipped, run.failing) == (
        2,
        1,
        3,
        ("tests/test_a.py::test_a",),
    )
    run = one("go test ./... ", BAD, 1)
    assert (run.passed, run.failed, run.skipped, run.failing) == (None, 2, None, ("TestTop/sub",))
    run = one("go test -v ./a", VERBOSE)
    assert (run.passed, run.failed, run.skipped, run.failing) == (1, 0, 1, ())
    run = one(
        "gotestsum",
        "=== FAIL: m TestA (0.00s)\nDONE 2 runs, 9 tests, 1 skipped, 1 failure in 0.5s\n",
        1,
    )
    assert (run.passed, run.failed, run.skipped, run.failing) == (7, 1, 1, ("TestA",))


def test_what_was_not_shown_is_unknown_and_never_none_at_all() -> None:
    run = one("pytest -x", RED, 1)
    assert (run.passed, run.failed, run.skipped) == (None, 1, None)
    run = one(
        "pytest", "FAILED a.py::t\n!!! stopping after 1 failures !!!\n1 failed, 2 passed in 1s\n", 1
    )
    assert (run.passed, run.failing) == (None, ("a.py::t",))
    assert one("pytest | tail -1", "2 failed, 1 passed in 1s\n").failing is None
    run = one("go test -v ./a | tail -3", VERBOSE)
    assert (run.passed, run.failed, run.skipped, run.failing) == (None, 0, None, ())
    run = one("go test ./... | tail -5", BAD)
    assert (run.failed, run.failing) == (None, None)
    run = one("tox", GREEN + GREEN)
    assert (run.verdict, run.passed, run.failing) == ("passed", None, ())
    assert runs("tox", GREEN + "no tests ran in 0.1s\n") == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("FAILED a/t.py::t - msg - more", "a/t.py::t"),
        ("FAILED a/t.py::t[x - y] - msg", "a/t.py::t[x - y]"),
        ("FAILED a/t.py::t[x - y]", "a/t.py::t[x - y]"),
        ("FAILED a/t.py::t[x - y", "a/t.py::t[x"),
        ("FAILED a/t.py::t", "a/t.py::t"),
        ("\x1b[31mFAILED\x1b[0m a/t.py::\x1b[1mt\x1b[0m - m\r", "a/t.py::t"),
        ("ERROR a/t.py - ImportError", "a/t.py"),
    ],
)
def test_a_failing_name_is_what_stands_before_the_message(line: str, name: str) -> None:
    output = f"noise\nSKIPPED [1] a.py:1: x\n{line}\n\x1b[31m==== \x1b[1m1 failed\x1b[0m in 0.1s ====\x1b[0m\r\n"
    assert one("pytest", output, 1).failing == (name,)


def test_the_cited_bytes_are_the_deciding_line() -> None:
    output = "é\ud800 first\n" + RED
    run = one("pytest", output, 1)
    assert cited(run, output) == RED[RED.index("FAILED") :].rstrip()  # the names too
    alone = "2 failed, 10 passed in 0.12s"
    assert cited(one("pytest | tail -1", alone), alone) == alone
    shown = cited(one("go test ./...", "→\n" + BAD, 1), "→\n" + BAD)
    assert shown == BAD[BAD.index("---") : BAD.index("\nok  \tex.org/m/c")]
    far = BAD.replace("no\n", "no\n" * 2000)
    assert cited(one("go test ./...", far, 1), far) == "FAIL\tex.org/m/b\t0.3s"
    assert cited(one("go test ./...", OK), OK) == OK[OK.index("ok") :].rstrip()
    far = ONE + "x\n" * 4000 + ONE.replace("/a", "/z")
    assert cited(one("go test ./...", far), far) == "ok  \tex.org/m/z\t0.2s"
    shown = "--- PASS: TestA (0.00s)\nPASS\n"
    run = one("go test -v ./a | grep -E 'PASS|FAIL'", shown)
    assert cited(run, shown) == "PASS"


# -- several runs -----------------------------------------------------------------------------------------------


def test_several_runs_are_told_apart_by_their_own_results() -> None:
    assert runs("pytest a; pytest b", RED + GREEN) == [
        ("pytest:a", "failed"),
        ("pytest:b", "passed"),
    ]
    assert runs("pytest a && pytest b", RED, 1) == [("pytest:a", "failed")]
    assert runs("pytest a && pytest b", GREEN) == []
    assert runs("pytest a; pytest b", RED) == []
    assert runs("pytest a", GREEN + RED, 1) == [("pytest:a", "failed")]
    assert runs("go test ./a; go test ./b", "FAIL\tm/a\t1s\nFAIL\nok  \tm/b\t1s\n") == [
        ("go:./a", "failed"),
        ("go:./b", "passed"),
    ]
    assert runs("go test ./... && go test ./b", OK) == []
    assert runs("pytest; go test ./...", GREEN + OK) == [("pytest", "passed"), ("go", "passed")]
    assert runs("pytest > log && go test ./a", ONE) == [("go:./a", "passed")]


def test_an_echo_that_is_found_once_divides_the_output() -> None:
    command = "cat old.log; echo '-- new --'; pytest -q; echo \"exit: $?\""
    assert runs(command, RED + "-- new --\n" + GREEN + "exit: 0\n") == [("pytest", "passed")]
    assert runs(command, "-- new --\n" + RED + "-- new --\n" + GREEN) == []
    assert runs("go test ./... ; echo next; go test ./a", BAD + "next\n" + ONE) == [
        ("go", "failed"),
        ("go:./a", "passed"),
    ]
