"""Patches as agents hand them over: which files they change, and what they do to each."""

from __future__ import annotations

from typing import Any

import pytest

from ef.readers.patches import FILES_MAX, Change, changes
from ef.readers.tools import neutral

ENVELOPE = """*** Begin Patch
*** Add File: docs/a.md
+# A
+
+text
*** Update File: /r/src/b.py
@@ def f():
-    return 1
+    return 2
*** Update File: old.py
*** Move to: new.py
@@
-x
+y
*** Delete File: gone.py
*** End Patch"""


CHANGED = (
    Change("add", "docs/a.md", "# A\n\ntext\n"), Change("update", "/r/src/b.py"), Change("delete", "old.py"),
    Change("move", "new.py"), Change("delete", "gone.py"),
)  # fmt: skip
PATHS = ("docs/a.md", "/r/src/b.py", "old.py", "new.py", "gone.py")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("apply_patch", ENVELOPE),
        ("apply_patch", {"input": ENVELOPE}),
        ("apply_patch", {"patchText": ENVELOPE}),
        ("apply_patch", ENVELOPE.replace("\n", "\r\n")),
        ("shell", {"command": ["apply_patch", ENVELOPE]}),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{ENVELOPE}\nEOF\n"]}),
        ("exec_command", {"cmd": f"cd /r && apply_patch <<'EOF'\n{ENVELOPE}\nEOF"}),
    ],
)
def test_a_patch_names_all_its_files_however_it_is_handed_over(name: str, given: Any) -> None:
    call = neutral("c", name, given)
    assert (call.action, call.command, call.path, call.paths) == ("patch", None, PATHS[0], PATHS)
    assert call.text is not None and [x.path for x in changes(call.text)] == list(PATHS)


def test_a_command_that_does_more_than_patch_stays_a_command() -> None:
    several = f"apply_patch <<'EOF'\n{ENVELOPE}\nEOF\npytest -q"
    for more in (several, f"echo '{ENVELOPE}'", "apply_patch --help"):
        assert neutral("c", "bash", {"command": more}).action == "shell", more


def test_what_a_patch_does_to_each_file_is_read() -> None:
    assert changes(ENVELOPE) == CHANGED
    assert changes(f"some words\n{ENVELOPE}\n*** Add File: behind.py\n+x") == CHANGED
    assert changes("*** Begin Patch\n*** Add File: a\n+x") == (Change("add", "a", "x\n"),)
    assert changes("*** Begin Patch\n*** Move to: a\n*** Add File: b\n*** Move to: c") == (
        Change("add", "b", ""),
    )
    assert changes("*** Add File: a\n+x") == changes("") == ()


def test_unified_diffs_are_patches_too() -> None:
    diff = "--- a/x.py\t2024\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/n.py\n--- a/o.py\n+++ /dev/null\n"
    assert changes(diff) == (Change("update", "x.py"), Change("add", "n.py"), Change("delete", "o.py"))  # fmt: skip
    assert changes("+++ b/x.py\n--- a/y.py\n") == ()
    assert len(changes("--- a\n+++ a\n" * (FILES_MAX + 9))) == FILES_MAX
    many = "*** Begin Patch\n" + "*** Delete File: a\n" * (FILES_MAX + 9)
    assert len(changes(many)) == FILES_MAX


def test_an_operation_on_one_file_is_a_patch_of_it() -> None:
    made = {"operation": {"type": "create_file", "path": "a.py", "diff": "+x\n+y\n"}}
    call = neutral("c", "apply_patch_call", made)
    assert (call.action, call.paths) == ("patch", ("a.py",))
    assert changes(call.text or "") == (Change("add", "a.py", "x\ny\n"),)
    gone = neutral("c", "apply_patch", {"type": "delete_file", "path": "a.py"})
    assert changes(gone.text or "") == (Change("delete", "a.py"),)
    assert neutral("c", "apply_patch", {"type": "other", "path": "a.py"}).text is None


def test_a_patch_of_search_and_replace_blocks_names_the_file_beside_it() -> None:
    block = "<<<<<<< SEARCH"
    call = neutral("c", "apply_diff", {"path": "a", "diff": block})
    assert (call.action, call.paths, call.text) == ("patch", ("a",), block)
