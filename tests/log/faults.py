"""Real write transactions that fail at a chosen step."""

from __future__ import annotations

from typing import Any

import lmdb
import pytest

from ef.log.lmdb_log import LmdbLog


class FaultyTxn:
    """A real write transaction; one of its methods fails once, before or after it has done its work."""

    def __init__(self, txn: Any, owner: Faulty) -> None:
        self._txn, self._owner = txn, owner

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._txn, name)
        owner = self._owner
        if name != owner.name:
            return real

        def failing(*args: Any, **how: Any) -> Any:
            owner.name = ""
            if owner.before and name == "commit":
                self._txn.abort()
            elif not owner.before:
                real(*args, **how)
            owner.after()
            raise owner.fault

        return failing


class Faulty:
    """An environment that hands out such transactions for writing."""

    def __init__(self, log: LmdbLog, monkeypatch: pytest.MonkeyPatch) -> None:
        self.real, self.name = log._env._env, ""
        self.before, self.after = True, lambda: None
        self.fault: Exception = lmdb.Error("?")
        monkeypatch.setattr(log._env, "_env", self)

    def fail(self, name: str, fault: Exception, *, before: bool, after: Any = lambda: None) -> None:
        self.name, self.fault, self.before, self.after = name, fault, before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def begin(self, **how: Any) -> Any:
        txn = self.real.begin(**how)
        return FaultyTxn(txn, self) if how.get("write") else txn
