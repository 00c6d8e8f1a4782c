"""From an image's name to a read-only copy of a function's code."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gateway_plugin.errors import BadRequest, CodeStoreError
from gateway_plugin.snapshots import KEEP_UNUSED_S, Snapshots, image_folder_name

HANDLER = "def handle(event, context):\n    return 'ok'\n"


class Shelf:
    """Two roots and a store, with functions made on demand."""

    def __init__(self, folder: Path) -> None:
        self.first, self.second, self.store = folder / "first", folder / "second", folder / "code"
        self.first.mkdir()
        self.second.mkdir()
        self.snapshots = Snapshots([self.first, self.second], self.store)

    def make(self, name: str = "echo", *, root: Path | None = None, text: str = HANDLER) -> Path:
        folder = (root or self.first) / name
        folder.mkdir(exist_ok=True)
        (folder / "handler.py").write_text(text)
        return folder

    def take(self, image: str = "gshare/echo:1") -> str:
        return self.snapshots.take(image)

    def refusal(self, image: str = "gshare/echo:1") -> str:
        with pytest.raises(BadRequest) as caught:
            self.take(image)
        return str(caught.value)

    def taken(self, digest: str) -> dict[str, str]:
        package = self.store / digest / "function"
        return {str(p.relative_to(package)): p.read_text() for p in package.rglob("*") if p.is_file()}


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


@pytest.mark.parametrize(
    "image",
    [
        "echo",
        "echo:1",
        "gshare/echo:latest",
        "registry.example:5000/team/echo",
        "registry.example:5000/team/echo:1.2",
        "team/echo@sha256:" + "0" * 64,
        "team/echo:1@sha256:" + "0" * 64,
    ],
)
def test_an_image_stands_for_the_folder_named_by_its_last_part(image: str) -> None:
    assert image_folder_name(image) == "echo"


@pytest.mark.parametrize("image", ["..", "team/..", "team/", ":1", "team/.git", "a_b", "Echo", "@sha256:0"])
def test_an_image_whose_last_part_is_no_function_name_is_refused(image: str) -> None:
    with pytest.raises(BadRequest, match="last part of an image"):
        image_folder_name(image)


def test_code_is_copied_read_only_as_a_package(shelf: Shelf) -> None:
    folder = shelf.make()
    (folder / "data").mkdir()
    (folder / "data" / "labels.txt").write_text("cat")
    digest = shelf.take()
    assert shelf.taken(digest) == {"handler.py": HANDLER, "__init__.py": "", "data/labels.txt": "cat"}
    handler = shelf.store / digest / "function" / "handler.py"
    assert stat.S_IMODE(handler.stat().st_mode) == 0o444


def test_an_init_file_of_the_functions_own_is_kept(shelf: Shelf) -> None:
    (shelf.make() / "__init__.py").write_text("VERSION = 1\n")
    assert shelf.taken(shelf.take())["__init__.py"] == "VERSION = 1\n"


def test_later_edits_do_not_reach_a_snapshot(shelf: Shelf) -> None:
    shelf.make()
    before = shelf.take()
    shelf.make(text="changed = True\n")
    assert shelf.take() != before
    assert shelf.taken(before)["handler.py"] == HANDLER


def test_the_digest_depends_on_content_and_path_only(shelf: Shelf) -> None:
    folder = shelf.make()
    digest = shelf.take()
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "handler.cpython-311.pyc").write_bytes(b"x")
    (folder / "old.pyc").write_bytes(b"x")
    (folder / ".hidden").write_text("x")
    os.utime(folder / "handler.py", (1, 1))
    shelf.make("copy")
    assert {shelf.take(), shelf.take("team/echo:2"), shelf.take("copy")} == {digest}
    (folder / "handler.py").rename(folder / "main.py")
    (folder / "handler.py").write_text("")
    assert shelf.take() != digest


def test_text_moved_from_one_file_to_the_next_changes_the_digest(shelf: Shelf) -> None:
    first, second = shelf.make("one", text="ab"), shelf.make("two", text="a")
    (first / "next.py").write_text("c")
    (second / "next.py").write_text("bc")
    assert shelf.take("one") != shelf.take("two")


def test_roots_are_looked_through_in_order(shelf: Shelf) -> None:
    shelf.make(root=shelf.second, text="second = 1\n")
    assert shelf.taken(shelf.take())["handler.py"] == "second = 1\n"
    shelf.make(root=shelf.first, text="first = 1\n")
    assert shelf.taken(shelf.take())["handler.py"] == "first = 1\n"


def test_a_missing_folder_is_refused_with_the_folders_looked_at(shelf: Shelf) -> None:
    text = shelf.refusal("registry.example/team/figlet:1")
    assert "'registry.example/team/figlet:1'" in text
    assert f"{shelf.first}/figlet, {shelf.second}/figlet" in text
    assert "runs only functions of this template" in text


def test_a_folder_without_a_handler_is_no_function(shelf: Shelf) -> None:
    (shelf.first / "echo").mkdir()
    assert "handler.py" in shelf.refusal()


def test_a_folder_that_leads_out_of_its_root_is_not_followed(shelf: Shelf, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "handler.py").write_text(HANDLER)
    (shelf.first / "echo").symlink_to(outside)
    assert "has no folder" in shelf.refusal()


def test_a_link_within_the_root_is_followed(shelf: Shelf) -> None:
    shelf.make("real")
    (shelf.first / "echo").symlink_to(shelf.first / "real")
    assert shelf.take() == shelf.take("real")


def test_a_file_that_leads_out_of_the_root_is_refused_by_name(shelf: Shelf) -> None:
    link = shelf.make() / "passwd"
    link.symlink_to("/etc/passwd")
    assert str(link) in shelf.refusal()


def test_a_linked_folder_and_a_pipe_are_refused_by_name(shelf: Shelf) -> None:
    folder = shelf.make()
    (shelf.first / "shared").mkdir()
    (folder / "lib").symlink_to(shelf.first / "shared")
    assert "link to a folder" in shelf.refusal()
    (folder / "lib").unlink()
    os.mkfifo(folder / "pipe")
    assert "neither a file nor a folder" in shelf.refusal()


def test_a_folder_over_the_limit_is_refused_with_the_limit(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway_plugin.snapshots.CODE_BYTES_LIMIT", 1024**2)
    folder = shelf.make()
    (folder / "a.bin").write_bytes(bytes(1024**2 - len(HANDLER)))
    shelf.take()
    (folder / "b.bin").write_bytes(b"x")
    assert "more than 1 MiB" in shelf.refusal()


def test_a_file_that_cannot_be_read_is_refused(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.make()

    def forbidden(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", forbidden)
    assert "Permission denied" in shelf.refusal()


def test_nothing_half_copied_is_left_when_a_copy_fails(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.make()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gateway_plugin.snapshots.os.fsync", full)
    with pytest.raises(CodeStoreError, match="No space left"):
        shelf.take()
    assert list(shelf.store.iterdir()) == []


def test_only_code_that_nobody_has_used_for_a_while_is_removed(shelf: Shelf) -> None:
    shelf.make()
    old = shelf.take()
    shelf.make(text="used = 1\n")
    used = shelf.take()
    now = (shelf.store / used).stat().st_mtime
    assert shelf.snapshots.remove_unused({used}, now=now) == []
    assert shelf.snapshots.remove_unused({used}, now=now + KEEP_UNUSED_S + 1) == [old]
    assert [path.name for path in shelf.store.iterdir()] == [used]


def test_code_that_is_retired_or_taken_again_is_kept_a_while_longer(shelf: Shelf) -> None:
    shelf.make()
    digest = shelf.take()
    for use_again in (lambda: shelf.snapshots.retire(digest), shelf.take):
        os.utime(shelf.store / digest, (0, 0))
        use_again()
        assert shelf.snapshots.remove_unused(set()) == []


def test_clearing_up_where_nothing_was_ever_taken_is_no_error(shelf: Shelf) -> None:
    shelf.snapshots.retire("0" * 64)
    assert shelf.snapshots.remove_unused(set()) == []
