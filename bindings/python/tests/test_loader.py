"""Finding and opening the shared library."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import eman

from .conftest import REPOSITORY

PACKAGE = Path(eman.__file__).parent
LIBRARY = Path(eman.build_info()["library"])

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at Linux's libraries")


def python(code: str, package_parent: Path = PACKAGE.parent, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("EMAN_LIBRARY", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd="/",  # -c would find a package in the working directory first
        env={**kept, "PYTHONPATH": str(package_parent), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def failure(library: Path) -> str:
    """The message when EMAN_LIBRARY names this file."""
    done = python(
        "import eman\ntry: eman.build_info()\nexcept eman.LibraryError as e: print(e)", EMAN_LIBRARY=str(library)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_opens_nothing_and_the_first_call_does() -> None:
    done = python(
        "import eman\n"
        "maps = lambda: 'libeman' in open('/proc/self/maps').read()\n"
        "print(maps()); eman.build_info(); print(maps())",
        EMAN_LIBRARY=str(LIBRARY),
    )
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_import_works_without_any_library_and_without_extras(tmp_path: Path) -> None:
    done = python(
        "import sys\n"
        "for name in ('trimesh', 'meshio', 'matplotlib', 'pyvista'): sys.modules[name] = None\n"
        "import eman; print(eman.__version__)",
        EMAN_LIBRARY=str(tmp_path / "none"),
    )
    assert done.stdout.strip() == eman.__version__, done.stderr


def test_variable_may_name_the_file_or_its_folder() -> None:
    for value in (LIBRARY, LIBRARY.parent):
        done = python("import eman; print(eman.build_info()['library'])", EMAN_LIBRARY=str(value))
        assert Path(done.stdout.strip()) == LIBRARY, done.stderr


def test_missing_file() -> None:
    message = failure(Path("/no/such/lib.so"))
    assert "/no/such/lib.so (EMAN_LIBRARY): no such file" in message
    assert "package's folder" not in message, "what was asked for by name must not be replaced silently"


def test_file_that_is_no_library(tmp_path: Path) -> None:
    text = tmp_path / "libeman.so"
    text.write_text("not ELF")
    assert "invalid ELF header" in failure(text) or "file too short" in failure(text)


def compiled(folder: Path, source: str) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (folder / "stub.c").write_text(source)
    target = folder / "libstub.so"
    subprocess.run([compiler, "-shared", "-fPIC", str(folder / "stub.c"), "-o", str(target)], check=True)
    return target


def test_another_library(tmp_path: Path) -> None:
    assert "it is not libeman" in failure(compiled(tmp_path, "int something(void) { return 1; }"))


def test_older_abi(tmp_path: Path) -> None:
    message = failure(compiled(tmp_path, "int eman_abi_version(void) { return 0; }"))
    assert "its ABI version is 0, this package needs 1 or later" in message


def test_newer_abi_is_served(tmp_path: Path) -> None:
    stub = compiled(tmp_path, "int eman_abi_version(void) { return 7; }")
    done = python("from eman import _loader; print(_loader.load().eman_abi_version())", EMAN_LIBRARY=str(stub))
    assert done.stdout.strip() == "7", done.stderr


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The package without its repository."""
    shutil.copytree(PACKAGE, tmp_path / "site" / "eman", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return tmp_path / "site"


def test_every_place_is_listed(copied: Path) -> None:
    done = python("import eman\ntry: eman.build_info()\nexcept OSError as e: print(type(e).__name__, e)", copied)
    assert done.stdout.startswith("LibraryError the shared library of eman could not be loaded. Tried:"), done.stderr
    assert f"{copied / 'eman' / 'libeman.so'} (the package's folder): no such file" in done.stdout
    assert "libeman.so.1 (the system's libraries): libeman.so.1: cannot open shared object file" in done.stdout
    assert "EMAN_LIBRARY" in done.stdout


def test_failed_search_is_tried_again(copied: Path) -> None:
    done = python(
        "import eman, shutil, sys\n"
        "try: eman.build_info()\n"
        "except eman.LibraryError: pass\n"
        f"shutil.copy({str(LIBRARY)!r}, eman.__path__[0] + '/libeman.so')\n"
        "print(eman.build_info()['library'])",
        copied,
    )
    assert done.stdout.strip() == str(copied / "eman" / "libeman.so"), done.stderr


def test_package_folder_comes_before_the_system(copied: Path, tmp_path: Path) -> None:
    shutil.copy(LIBRARY, copied / "eman" / "libeman.so")
    shutil.copy(LIBRARY, tmp_path / "libeman.so.1")
    code = "import eman; print(eman.build_info()['library'])"
    done = python(code, copied, LD_LIBRARY_PATH=str(tmp_path))
    assert done.stdout.strip() == str(copied / "eman" / "libeman.so"), done.stderr
    (copied / "eman" / "libeman.so").unlink()
    done = python(code, copied, LD_LIBRARY_PATH=str(tmp_path))
    assert done.stdout.strip() == "libeman.so.1", done.stderr


def test_repositorys_build_folder(tmp_path: Path) -> None:
    package = tmp_path / "bindings" / "python" / "eman"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    (tmp_path / "include").mkdir()
    shutil.copy(REPOSITORY / "include" / "eman.h", tmp_path / "include")
    (tmp_path / "build").mkdir()
    shutil.copy(LIBRARY, tmp_path / "build" / "libeman.so")
    done = python("import eman; print(eman.build_info()['library'])", package.parent)
    assert done.stdout.strip() == str(tmp_path / "build" / "libeman.so"), done.stderr


def test_threads_that_load_together_open_it_once() -> None:
    done = python(
        "import threading, eman\n"
        "from eman import _loader\n"
        "opened = []\n"
        "real = _loader._open\n"
        "_loader._open = lambda path: (opened.append(path), real(path))[1]\n"
        "barrier = threading.Barrier(8)\n"
        "threads = [threading.Thread(target=lambda: (barrier.wait(), eman.build_info())) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(opened))",
        EMAN_LIBRARY=str(LIBRARY),
    )
    assert done.stdout.strip() == "1", done.stderr
