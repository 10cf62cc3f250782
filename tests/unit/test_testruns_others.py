"""What other programs print, what an interrupted run leaves, and which runs are no whole suite."""

import pytest

from ef.reducers.observers.filters import may_show
from ef.reducers.observers.shellwords import Command
from ef.reducers.observers.testruns import test_runs as judged
from tests.unit.test_testruns import GREEN, ONE, RED, one, runs

NINE = "9 passed in 0.1s\n"


@pytest.mark.parametrize(
    ("command", "twin"),
    [
        ("pytest -q 2>&1 | grep Traceback; python3 show.py", "pytest -q 2>&1 | grep passed"),
        ("./other.sh; pytest -q | grep -E 'error'", "./other.sh; pytest -q | grep -E 'passed|failed|error'"),
        ("pytest -q 2>/dev/null | grep Error; make lint", "pytest -q 2>/dev/null | grep -v Error; make lint"),
        ("pytest -q 2>&1 | head -5; python3 - <<'EOF'\nx\nEOF", "python3 - <<'EOF'\nx\nEOF\npytest -q 2>&1 | tail -5"),
        ("pytest -q; python3 show.py", "pytest -q && python3 show.py"),
        ("pytest -q | tail -3 && ./deploy.sh", "./build.sh && pytest -q | tail -3"),
        ("./other.sh; pytest -q | grep passed", "./other.sh && pytest -q"),
        ("./other.sh && pytest -q | head -50", "mypy . && pytest -q | head -50"),
        ("pytest | tail; git log", "pytest | tail; git log --oneline"),
        ("pytest | tail; git", "pytest | tail; git status"),
        ("pytest | tail; go run .", "pytest | tail; go vet ./..."),
        ("pytest | tail; make docs", "pytest | tail; make lint format"),
        ("pytest | tail; uv run x.py", "pytest | tail; uv run ruff check"),
        ("pytest | tail; python -m x", "pytest | tail; python -m mypy"),
        ("pytest | tail; npm run", "pytest | tail; npm run lint:js"),
        ("pytest | sort", "pytest | cat"),
        ("pytest | head -1", "pytest | head -9"),
    ],
)  # fmt: skip
def test_a_summary_is_not_taken_from_another_program(command: str, twin: str) -> None:
    assert runs(command, NINE) == []
    assert runs(twin, NINE) == [("pytest", "passed")]


@pytest.mark.parametrize(
    ("command", "code", "want"),
    [
        ("./a.sh; go test ./a | tail", 0, []),
        ("./a.sh && go test ./a | tail", 0, ["passed"]),
        ("./a.sh; go test ./a", 0, ["passed"]),
    ],
)
def test_packages_are_not_taken_from_another_program(
    command: str, code: int, want: list[str]
) -> None:
    assert [x for _, x in runs(command, ONE, code)] == want


def test_a_status_of_its_own_confirms_a_failure_after_another_program() -> None:
    assert runs("./other.sh; pytest -q", RED, 1) == [("pytest", "failed")]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("grep passed", True),
        ("grep -E [0-9]+\\s(passed|failed)", True),
        ("grep -E ^[0-9]+.*passed", True),
        ("grep -E ^9.passed|x", True),
        ("grep -E ^FAILED|^E", False),
        ("grep -E (error|Trace)", False),
        ("grep -E (error|Trace)?", True),
        ("grep -E passed$", False),
        ("grep -E 0\\.1s$", True),
        ("grep -E errors*)", False),
        ("grep error\\|passed", True),
        ("grep error|passed", False),
        ("grep \\(error\\)", False),
        ("grep [0-9]\\+.passed", True),
        ("grep x*passed", True),
        ("grep -i PASSED", True),
        ("grep -F -e x -e passed", True),
        ("grep -v passed", False),
        ("grep -A 3 passed", True),
        ("grep -f patterns", False),
        ("grep " + "p" * 501, False),
        ("rg passed|failed", True),
        ("tail -3", True),
    ],
)
def test_a_grep_shows_only_what_its_pattern_can_match(words: str, shown: bool) -> None:
    assert may_show([Command(tuple(words.split(" ")))], "9 passed in 0.1s") is shown


@pytest.mark.parametrize(
    ("command", "output", "twin"),
    [
        ("pytest -s 2>&1 | tail -20", "a:\n1 passed in 0.01s\nFatal Python error: x\n", NINE),
        ("pytest | tail -3", "7 passed in 0.1s\nkilled\n", "7 passed in 0.1s\n\nmake: *** [test] Error 1\n"),
        ("pytest | tail; mypy .", NINE + "x.sh: line 1: 7 Killed pytest\n", NINE + "Success: no issues\n"),
        ("pytest | tail; mypy .", NINE + NINE + "x\n", NINE + "x\n"),
        ("pytest | tail", "INTERNALERROR> x\n" + NINE, "x\n" + NINE),
        ("pytest", "<system-reminder>\n12 passed in 0.1s\n</system-reminder>\n", NINE),
        ("pytest", "collected 0 items / 1 error\n" + NINE, "collected 9 items\n" + NINE),
        ("pytest", "<system-reminder>\n" + NINE, "<reminder>\n" + NINE),
        ("pytest", 2 * "<system-reminder>" + "</system-reminder>\n" + NINE, "</system-reminder>\n" + NINE),
        ("pytest | tail; echo \"rc: $?\"", NINE + "rc= 0\n", NINE + "rc: 0\n"),
        ("pytest | tail; echo a > f; echo $a$b$c$d", NINE + "x\n", NINE + "<system-reminder>x</system-reminder>\n"),
        ("make test | tail", NINE + "died\n", NINE + "[test] done\n"),
    ],
)  # fmt: skip
def test_the_deciding_summary_is_the_last_thing_that_the_run_says(
    command: str, output: str, twin: str
) -> None:
    assert runs(command, output) == []
    assert [x for _, x in runs(command, twin)] == ["passed"]


def test_packages_are_no_verdict_when_the_run_died_after_them() -> None:
    for text in ("panic: no\n", "killed by watchdog\n"):
        assert runs("go test ./a | tail", ONE + text) == []
    assert runs("go test ./a | tail", ONE + "?   \tm/b\t[no test files]\n") == [
        ("go:./a", "passed")
    ]


def test_a_status_says_passed_where_the_summary_is_not_last_but_not_how_many() -> None:
    run = one("pytest -s", NINE + "bye\n")
    assert (run.verdict, run.passed, run.failed) == ("passed", None, 0)
    assert one("pytest -s && mypy .", NINE + "bye\n").passed == 9


def test_what_was_wrapped_into_the_output_moves_no_span() -> None:
    output = "é<system-reminder>é\n</system-reminder>\n" + NINE
    run = one("pytest", output)
    assert output.encode()[run.start : run.end] == NINE.strip().encode()


@pytest.mark.parametrize(
    ("command", "scope"),
    [
        ("pytest --splits=4 --group=2", "--group=2 --splits=4"),
        ("pytest --splits 4 --group 2", "--group=2 --splits=4"),
        ("pytest --only-changed", "--only-changed"),
        ("pytest --testmon tests", "tests --testmon"),
        ("pytest -p testmon", "-p=testmon"),
        ("pytest -o addopts= -o cache_dir=x", "-o=addopts="),
        ("PYTHONPATH=old pytest", "PYTHONPATH=old"),
        ("export X=1 Y; PYTHONUNBUFFERED=1 pytest", "X=1"),
        ("X=1; PATH=a:$PATH pytest", "X=1"),
        ("X=1 bash -c pytest", "X=1"),
        ("(export X=1); CI=1 pytest", ""),
        ("git stash && pytest -q; git stash pop", "after='git stash'"),
        ("git stash -u; pytest", "after='git stash'"),
        ("git stash; git stash pop; git stash list; pytest", ""),
        ("git -C . checkout main && pytest", "after='git checkout main'"),
        ("git checkout -b new && git reset x && git; pytest -q && true", ""),
        ("git --no-pager reset --hard x; pytest", "after='git reset --hard x'"),
    ],
)
def test_what_may_choose_the_tests_belongs_to_the_scope(command: str, scope: str) -> None:
    assert runs(command, NINE) == [("pytest:" + scope if scope else "pytest", "passed")]


@pytest.mark.parametrize(
    ("command", "entity"),
    [
        ("go test ./... -testify.m X", "go:-testify.m=X"),
        ("go test -update ./...", "go:-update"),
        ("go test -update m", "go:. -update=m"),
        ("go test -timeout 9s -short ./...", "go:-short"),
    ],
)
def test_unknown_options_of_go_belong_to_the_scope(command: str, entity: str) -> None:
    assert runs(command, ONE) == [(entity, "passed")]


@pytest.mark.parametrize(
    ("command", "cwd", "home", "entity"),
    [
        ("pytest", "/w/a", "/w", "pytest:cd=a"),
        ("pytest", "/w", "/w/", "pytest"),
        ("cd .. && pytest", "/w/a", "/w", "pytest"),
        ("cd /w && pytest", "/w/a", "/w", "pytest"),
        ("cd /w && pytest", None, "/w", "pytest"),
        ("cd a && pytest", None, "/w", "pytest:cd=a"),
        ("pytest", "/x", "/w", "pytest:cd=/x"),
        ("cd ~/x && pytest", "/w/a", "/w", "pytest:cd=/w/a cd='~/x'"),
        ("pytest", "/w/a", None, "pytest"),
    ],
)
def test_another_directory_than_the_sessions_own_is_a_scope(
    command: str, cwd: str | None, home: str | None, entity: str
) -> None:
    (run,) = judged(command, GREEN, exit_code=0, cwd=cwd, home=home)
    assert run.entity == entity
