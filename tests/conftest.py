import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = Path(os.environ.get("EMAN_LIBRARY", ROOT / "build" / "libeman.so"))


@pytest.fixture(scope="session")
def library() -> Path:
    assert LIBRARY.exists(), "build the library first: make"
    return LIBRARY


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory, library: Path):
    """Compiles a C program of tests/programs and returns its path."""
    folder = tmp_path_factory.mktemp("programs")

    def compile_program(source: str, *flags: str, compiler: str | None = None, link: bool = True) -> Path:
        path = ROOT / "tests" / "programs" / source
        if not any(f.startswith("-std") for f in flags):
            flags += ("-std=c11",)
        output = folder / (path.stem + "-" + str(abs(hash((source, flags, compiler)))))
        options = [f for f in flags if f.startswith("-") and not f.startswith("-Wl")]
        libraries = [f for f in flags if f not in options]
        compiler = compiler or os.environ.get("CC", "cc")
        command = [compiler, "-O1", "-g", "-pedantic", "-Wall", "-Wextra", "-Werror", *options]
        command += [f"-I{ROOT / 'include'}", str(path), "-o", str(output), "-pthread"]
        if "-fsyntax-only" not in flags:  # clang complains of libraries that it does not need
            command += ["-lm", *libraries]
        if link:
            command += [f"-L{library.parent}", "-leman", f"-Wl,-rpath,{library.parent}"]
        subprocess.run(command, check=True)
        return output

    return compile_program


@pytest.fixture(params=[c for c in ("cc", "clang") if shutil.which(c)])
def compiler(request: pytest.FixtureRequest) -> str:
    """Each C compiler there is; they also take C++ with -x c++."""
    return request.param
