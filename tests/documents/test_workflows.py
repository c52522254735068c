"""The workflows fit their schema, and every command in them is one that this clone has: a dry run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from commands import CLONE, run_here

FOLDER = CLONE / ".github" / "workflows"
GATE = CLONE / "examples" / "regression_gate" / "regression-gate.yml"
JUDGE = CLONE / "examples" / "own_code" / "judge.yml"
FILES = [*sorted(FOLDER.glob("*.yml")), GATE]
pytestmark = [
    pytest.mark.documents,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="a source distribution has no workflows"),
]
each_file = pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)

PROJECT = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def read(file: Path) -> dict[Any, Any]:
    """A workflow. YAML takes its key `on` for True."""
    import yaml

    workflow: dict[Any, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return workflow


def jobs(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = read(file)["jobs"]
    return found


def steps(file: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(file).values() for step in job.get("steps", [])]


def variables(file: Path) -> dict[str, str]:
    """What the environment of its steps has, as a shell would see it."""
    workflow = read(file)
    found = {"GITHUB_REF_NAME": "v0", **workflow.get("env", {})}
    for job in jobs(file).values():
        found |= job.get("env", {})
    return found


def commands(file: Path) -> Iterator[list[str]]:
    """The words of every command of its steps, without `sudo`, and with variables in place."""
    known = variables(file)
    for step in steps(file):
        for line in _EXPRESSION.sub("expression", step.get("run", "")).replace("\\\n", " ").splitlines():
            words = [re.sub(r"\$(\w+)", lambda name: known[name[1]], word) for word in shlex.split(line)]
            yield words[1:] if words[0] == "sudo" else words


class Dry:
    """What one command would do, if this clone has all that it names."""

    def __init__(self, words: list[str]) -> None:
        program, *self.arguments = words
        name = program.removeprefix("environment/bin/")
        checks = {"make": self.make, "py-backends": self.py_backends, "apt": self.apt, "pipx": self.pipx}
        if program.startswith(".ci/"):
            self.script(program)
        elif name in checks:
            checks[name]()
        else:
            assert (name, self.arguments[0]) in {("python", "-m"), ("pip", "install")}, f"what is {words}?"

    @staticmethod
    def script(program: str) -> None:
        path = CLONE / program
        assert os.access(path, os.X_OK), f"{program} cannot be run"
        check = ["bash", "-n", str(path)]
        subprocess.run(check, check=True, timeout=60)

    def make(self) -> None:
        dry = ["make", "--dry-run", *self.arguments]
        subprocess.run(dry, cwd=CLONE, check=True, capture_output=True, timeout=60)
        for script in ("set_up", "wheel", "repair_wheel"):
            self.script(f"cmake/{script}.sh")

    def py_backends(self) -> None:
        known = run_here(self.arguments[0], "--help").stdout
        options = {word for word in self.arguments if word.startswith("-")}
        assert not [option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", known)]
        if self.arguments[0] == "diff":
            assert "--fail-on slower" in " ".join(self.arguments)

    def apt(self) -> None:
        """The line of README."""
        line = " ".join(["sudo", "apt", *(word for word in self.arguments if word != "--yes")])
        assert f"`{line}`" in (CLONE / "README.md").read_text(encoding="utf-8")

    def pipx(self) -> None:
        assert self.arguments[:2] == ["run", "cibuildwheel==4.*"]


@each_file
class TestEveryWorkflow:
    def test_its_steps_are_scripts_that_a_shell_can_read(self, file: Path) -> None:
        check = ["bash", "-n"]
        for step in steps(file):
            subprocess.run(check, input=step.get("run", ""), text=True, check=True, timeout=60)

    def test_its_commands_are_there(self, file: Path) -> None:
        for words in commands(file):
            Dry(words)

    def test_an_expression_is_no_text_of_a_stranger(self, file: Path) -> None:
        """In a script it would be run: a title, a branch's name."""
        found = [name for step in steps(file) for name in _EXPRESSION.findall(step.get("run", ""))]
        assert all(name.startswith("matrix.") for name in found)

    def test_its_actions_are_of_a_major_version(self, file: Path) -> None:
        used = [step["uses"] for step in steps(file) if "uses" in step]
        assert all(re.fullmatch(r"(actions|pypa)/[\w-]+@(release/)?v\d+", action) for action in used)
        for job in jobs(file).values():
            assert "uses" not in job or (CLONE / job["uses"]).is_file()

    def test_it_may_do_little_and_not_for_ever(self, file: Path) -> None:
        workflow = read(file)
        assert workflow["permissions"] == {"contents": "read"}
        assert "concurrency" in workflow
        more = {name: job["permissions"] for name, job in jobs(file).items() if "permissions" in job}
        assert more == ({"publish": {"id-token": "write"}} if file.stem == "release" else {})
        assert all("uses" in job or 0 < job["timeout-minutes"] <= 350 for job in jobs(file).values())
        checkouts = [step for step in steps(file) if step.get("uses", "").startswith("actions/checkout")]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_groups_differ() -> None:
    """A workflow that another one calls would wait for its caller, for ever, in the same group."""
    groups = [read(file)["concurrency"]["group"] for file in FILES]
    assert len(set(groups)) == len(groups)


def test_the_versions_of_python_are_those_of_the_classifiers() -> None:
    classifiers = "\n".join(PROJECT["project"]["classifiers"])
    versions = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", classifiers, re.MULTILINE)
    short = [f"cp{version.replace('.', '')}" for version in versions]
    assert jobs(FOLDER / "tests.yml")["tests"]["strategy"]["matrix"]["python"] == versions
    wheels = jobs(FOLDER / "wheels.yml")["wheels"]["strategy"]["matrix"]["wheel"]
    assert wheels == [f"{python}-manylinux_x86_64" for python in short]
    assert PROJECT["tool"]["cibuildwheel"]["build"] == [f"{python}-*" for python in short]
    assert f">={versions[0]}" == PROJECT["project"]["requires-python"]


def test_what_is_uploaded_is_what_is_published() -> None:
    def given(file: str, action: str) -> list[dict[str, Any]]:
        return [step["with"] for step in steps(FOLDER / file) if step.get("uses", "").startswith(action)]

    (download,) = given("release.yml", "actions/download-artifact@")
    uploads = given("wheels.yml", "actions/upload-artifact@")
    assert len(uploads) == 2
    assert all(upload["name"].startswith(download["pattern"].removesuffix("*")) for upload in uploads)
    assert {upload["path"] for upload in uploads} == {"dist/*.tar.gz", "dist/*.whl"}
    assert download["path"] == "dist"  # where the action that publishes looks


class TestRelease:
    @pytest.fixture
    def clone(self, tmp_path: Path) -> Path:
        for name in (".ci/release", "py_backends/__init__.py", "CHANGELOG.md"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes((CLONE / name).read_bytes())
        (tmp_path / ".ci" / "release").chmod(0o755)
        source = tmp_path / "py_backends" / "__init__.py"
        text = re.sub(r'(?m)^__version__ = ".*"$', '__version__ = "3.4.5"', source.read_text(encoding="utf-8"))
        source.write_text(text, encoding="utf-8")
        return tmp_path

    @staticmethod
    def says(clone: Path, *tag: str) -> str:
        run = subprocess.run([clone / ".ci" / "release", *tag], capture_output=True, text=True, check=False, timeout=60)
        assert (run.returncode == 0) == (run.stderr == "")
        return run.stderr

    def test_a_tag_is_of_the_version(self, clone: Path) -> None:
        assert "The tag is v3.4.6, and py_backends/__init__.py says 3.4.5" in self.says(clone, "v3.4.6")
        assert "usage" in self.says(clone)

    def test_the_changelog_has_it(self, clone: Path) -> None:
        assert 'CHANGELOG.md has no section "## [3.4.5] - DATE"' in self.says(clone, "v3.4.5")
        with (clone / "CHANGELOG.md").open("a", encoding="utf-8") as changelog:
            changelog.write("\n## [3.4.5] - 2030-01-01\n")
        assert self.says(clone, "v3.4.5") == ""


def test_the_nightly_leaves_no_test_out() -> None:
    """It names all of tests/: of a list of files, some that hold tests marked `pytest.mark.nightly` were missing."""
    script = (CLONE / ".ci" / "nightly").read_text(encoding="utf-8")
    whole = r"\$python -m pytest --thorough (--\S+ (\d+ )?)*tests$"
    assert re.search(whole, script, re.MULTILINE)


class TestJudge:
    """The script of the workflow that judges pull requests, with a judge who finds files wrong that are named `bad`.

    It refuses those that are named `unclear`.
    """

    STUB = """#!/bin/sh
case "$3" in *unclear*) echo "does not say its launch" >&2; exit 2;; esac
echo "judged $2 $3"
case "$3" in *bad*) exit 1;; esac
"""

    @pytest.fixture
    def judged(self, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
        def git(*words: str) -> str:
            called = [shutil.which("git") or "git", "-c", "user.name=A", "-c", "user.email=a@b"]
            run = subprocess.run([*called, *words], cwd=clone, check=True, capture_output=True, text=True)
            return run.stdout.strip()

        def run(
            base: str | None = None, texts: Mapping[str, str | None] = {}, **files: str
        ) -> subprocess.CompletedProcess[str]:
            for file, text in ({each: f"// {each}" for each in files.values()} | dict(texts)).items():
                (clone / file).parent.mkdir(parents=True, exist_ok=True)
                if text is None:
                    (clone / file).unlink()
                else:
                    (clone / file).write_text(text)
            git("add", "--all")
            git("commit", "-m", "sources")
            shutil.rmtree(tmp_path / "judgements", ignore_errors=True)  # each run has a machine of its own
            environment = {"RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
            environment |= {"BASE": base or first, "PATH": os.environ["PATH"]}
            (script,) = (each["run"] for each in steps(JUDGE) if each.get("shell") == "bash")
            called = [shutil.which("bash") or "bash", "-eo", "pipefail", "-c", script]
            return subprocess.run(called, cwd=clone, env=environment, capture_output=True, text=True, check=False)

        stub, clone = tmp_path / "environment" / "bin" / "py-backends", tmp_path / "clone"
        for folder in (stub.parent, clone):
            folder.mkdir(parents=True)
        stub.write_text(self.STUB)
        stub.chmod(0o755)
        git("init", "--quiet")
        git("commit", "--allow-empty", "-m", "first")
        first = git("rev-parse", "HEAD")
        return run

    def test_each_source_is_judged_for_the_kernel_of_its_folder(self, judged: Any, tmp_path: Path) -> None:
        run = judged(one="matmul/ann.cu", two="week 2/dot/eve.cl", other="notes.md")
        assert (run.returncode, run.stdout) == (0, "judged matmul matmul/ann.cu\njudged dot week 2/dot/eve.cl\n")
        assert "judged dot" in (tmp_path / "summary").read_text()

    def test_a_wrong_one_fails_and_the_others_are_judged(self, judged: Any) -> None:
        run = judged(one="matmul/bad.cu", two="matmul/good.cu")
        assert run.returncode == 1
        assert "good.cu" in run.stdout

    def test_what_is_refused_fails_and_says_why_in_the_summary(self, judged: Any, tmp_path: Path) -> None:
        assert judged(one="matmul/unclear.cu").returncode == 1
        assert "does not say its launch" in (tmp_path / "summary").read_text()

    def test_a_folder_may_hold_a_kernel_of_its_own(self, judged: Any) -> None:
        """And the repository one that is called as what the workflow makes."""
        run = judged(kernel="week 2/axpy/problem.py", one="week 2/axpy/ann.cu", two="judgements/a.txt")
        assert (run.returncode, run.stdout) == (0, "judged ./week 2/axpy week 2/axpy/ann.cu\n")

    SOURCES: ClassVar = {
        "matmul/ann.cu": '#include "tile.cuh"\n',
        "matmul/eve.cu": "// tile.cuh is for others\n",
        "dot/bob.cl": '# include "../common/parts [1].h"\n',
        "matmul/tile.cuh": '#include "../common/parts [1].h"\n',
        "common/parts [1].h": "",
        "matmul/other.h": "",
        "matmul/tim.cpp": '#include "tile.cuh"\n',
    }

    @pytest.mark.parametrize(
        ("changed", "sources"),
        [
            ({"matmul/tile.cuh": "// broken"}, ["matmul/ann.cu"]),
            ({"matmul/tile.cuh": None}, ["matmul/ann.cu"]),
            ({"common/parts [1].h": "// broken"}, ["dot/bob.cl", "matmul/ann.cu"]),
            ({"matmul/tile.cuh": "// broken", "matmul/ann.cu": '#include "tile.cuh"'}, ["matmul/ann.cu"]),
            ({"matmul/ann.cu": None}, []),
            ({"matmul/other.h": "// of nobody", "matmul/tim.cpp": "// no model"}, []),
        ],
        ids=["header", "without header", "through another", "both", "without source", "nothing"],
    )
    def test_a_source_is_judged_that_includes_what_is_changed(
        self, judged: Any, changed: dict[str, str | None], sources: list[str]
    ) -> None:
        judged(texts=self.SOURCES)
        run = judged(base="HEAD~1", texts=changed)
        assert run.returncode == 0, run
        assert sorted(run.stdout.splitlines()) == [f"judged {each.partition('/')[0]} {each}" for each in sources]

    def test_what_cannot_be_compared_is_no_success(self, judged: Any) -> None:
        assert judged(base="0" * 40, one="matmul/ann.cu").returncode != 0
