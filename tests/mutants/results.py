"""The results of a run, in a file that a later run goes on with."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from py_backends.system.files import write_whole

from .judge import Verdict


@dataclass
class Results:
    """What became of mutants, by identifier, and what is known of the suite on unchanged texts: see `Judge`."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    unfit: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path | None) -> Results:
        """Those of a file; none where it is not there yet. ValueError, in one line, where it holds something else."""
        if path is None or not path.exists():
            return cls()
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                {name: Verdict(**fields) for name, fields in content["verdicts"].items()},
                dict(content["times"]),
                dict(content.get("unfit", {})),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} holds no results of mutants: remove it, or name another file") from error

    def write(self, path: Path) -> None:
        write_whole(path, json.dumps(asdict(self), indent=1) + "\n")

    def keep(self, identifier: str, verdict: Verdict) -> None:
        self.verdicts[identifier] = verdict
