"""What is read has an end, what is written is whole, and every name can stand on one line."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from py_backends.errors import WrongRequest
from py_backends.results.report import Report
from py_backends.system import files
from py_backends.system.files import printable, read_text, write_whole


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"plain.json", "plain.json"),
        ("größer µ.json".encode(), "größer µ.json"),
        (b"caf\xe9.json", r"caf\xe9.json"),
        (b"two\nlines\x1b[31m", r"two\nlines\x1b[31m"),
    ],
)
def test_a_name_stands_on_one_line_whatever_its_bytes(name: bytes, shown: str) -> None:
    assert printable(Path(os.fsdecode(name))) == shown


class TestReading:
    def test_ends_where_a_file_is_larger_than_any_results(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(files, "LARGEST_READ", 1000)
        path = tmp_path / "file"
        path.write_bytes(b"x" * 1000)
        assert read_text(path) == "x" * 1000
        path.write_bytes(b"x" * 1001)
        with pytest.raises(OSError, match=r"larger than 0\.001 MB"):
            read_text(path)

    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
    def test_takes_no_device(self, device: str) -> None:
        with pytest.raises(WrongRequest, match=f"{device} cannot be read: it is a device"):
            Report.read(Path(device))

    def test_passes_over_a_byte_order_mark(self, tmp_path: Path) -> None:
        """With it, whole results were called none."""
        path = tmp_path / "file"
        path.write_bytes(b"\xef\xbb\xbf{}")
        assert read_text(path) == "{}"

    def test_does_not_wait_for_somebody_to_write(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert read_text(tmp_path / "pipe") == ""

    def test_takes_all_that_comes_through_a_pipe(self) -> None:
        """As in `diff <(git show HEAD~9:results.json) results.json`."""
        ours, theirs = os.pipe()

        def write() -> None:
            with open(theirs, "wb") as file:
                file.write(b"x" * 1_000_000)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert read_text(Path(f"/dev/fd/{ours}")) == "x" * 1_000_000
        finally:
            os.close(ours)
            writer.join()


class TestWriting:
    def test_takes_a_name_as_long_as_names_can_be(self, tmp_path: Path) -> None:
        """The temporary file beside it must not need a longer one."""
        path = tmp_path / ("x" * 255)
        write_whole(path, "new")
        assert path.read_text() == "new"

    def test_takes_bytes(self, tmp_path: Path) -> None:
        write_whole(tmp_path / "picture.png", b"\x89PNG")
        assert (tmp_path / "picture.png").read_bytes() == b"\x89PNG"
