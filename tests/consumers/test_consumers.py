"""Projects of other people, against the installed library, which was moved after it was installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from platforms import ARM64, NATIVE, PROGRAMS, WINDOWS, Platform, make, need

HERE = Path(__file__).parent
PYRAMID = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0.5 0.4 1\nf 4 3 2 1\nf 1 2 5\nf 2 3 5\nf 3 4 5\nf 4 1 5\n"

Installed = Callable[[Platform], Path]


def project(name: str, folder: Path, *programs: str) -> Path:
    """A copy of a project with its sources, outside the repository."""
    copy = Path(shutil.copytree(HERE / name, folder / name))
    for program in programs:
        shutil.copy(PROGRAMS / program, copy)
    return copy


def configure(source: Path, platform: Platform, tree: Path) -> subprocess.CompletedProcess[str]:
    compilers = [f"-DCMAKE_C_COMPILER={platform.prefix}gcc", f"-DCMAKE_CXX_COMPILER={platform.prefix}g++"]
    command = ["cmake", "-S", source, "-B", source / "build", f"-Deman_DIR={tree / 'lib/cmake/eman'}"]
    return subprocess.run([*command, *compilers, *platform.cmake], capture_output=True, text=True)


def test_cmake(platform: Platform, installed: Installed, tmp_path: Path) -> None:
    need("cmake", f"{platform.prefix}g++")
    tree, source = installed(platform), project("cmake", tmp_path, "features.c", "features.cpp")
    result = configure(source, platform, tree)
    assert result.returncode == 0, result.stdout + result.stderr
    subprocess.run(["cmake", "--build", source / "build"], check=True, stdout=subprocess.DEVNULL)
    suffix = ".exe" if platform is WINDOWS else ""
    output = platform.run(source / "build" / f"features_c{suffix}", tree=tree)
    assert "difference after a similarity" in output
    (tmp_path / "pyramid.obj").write_text(PYRAMID)
    output = platform.run(source / "build" / f"features_cpp{suffix}", str(tmp_path / "pyramid.obj"), tree=tree)
    assert "5 vertices, 6 faces, 1 component(s)" in output


@pytest.mark.parametrize(
    ("wanted", "fits"), [("", True), ("0.1", True), ("0.1.0 EXACT", True), ("0.2", False), ("0.0", False), ("1", False)]
)
def test_cmake_takes_a_compatible_version(installed: Installed, tmp_path: Path, wanted: str, fits: bool) -> None:
    need("cmake")
    project = "cmake_minimum_required(VERSION 3.16)\nproject(p LANGUAGES NONE)\n"
    (tmp_path / "CMakeLists.txt").write_text(project + f"find_package(eman {wanted} CONFIG REQUIRED)\n")
    result = configure(tmp_path, NATIVE, installed(NATIVE))
    assert (result.returncode == 0) == fits, result.stdout + result.stderr


def test_cmake_names_a_missing_library(installed: Installed, tmp_path: Path) -> None:
    need("cmake")
    tree = Path(shutil.copytree(installed(NATIVE), tmp_path / "broken", symlinks=True))
    (tree / NATIVE.library).unlink()
    result = configure(project("cmake", tmp_path, "features.c", "features.cpp"), NATIVE, tree)
    assert result.returncode != 0 and f"the library {tree / NATIVE.library} is missing" in " ".join(
        result.stderr.split()
    )


def test_pkg_config_and_make(installed: Installed, tmp_path: Path) -> None:
    need("pkg-config")
    tree, source = installed(NATIVE), project("make", tmp_path, "features.c")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(tree / "lib" / "pkgconfig")}
    subprocess.run(["make", "-s", "-C", source], env=environment, check=True)
    assert "difference after a similarity" in NATIVE.run(source / "features", tree=tree)


@pytest.mark.parametrize("libdir", ["lib", "lib/x86_64-linux-gnu"])
def test_pkg_config_follows_the_tree(installed: Installed, tmp_path: Path, libdir: str) -> None:
    need("pkg-config")
    make("install", f"DESTDIR={tmp_path}", "PREFIX=/first", f"LIBDIR={libdir}")
    tree = (tmp_path / "first").rename(tmp_path / "second")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(tree / libdir / "pkgconfig")}
    command = ["pkg-config", "--cflags-only-I", "--libs-only-L", "eman"]
    flags = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
    assert {Path(f[2:]).resolve() for f in flags} == {tree / "include", tree / libdir}


@pytest.mark.parametrize("platform", [NATIVE, ARM64], ids=lambda p: p.name or "native", indirect=True)
def test_a_program_that_only_opens_the_library(platform: Platform, installed: Installed, tmp_path: Path) -> None:
    tree = installed(platform)
    program = platform.compile(PROGRAMS / "load_environment.c", tmp_path / "program", "-ldl", tree=tree)
    assert platform.run(program, str(tree / platform.library), "nearest", tree=tree).count("\n") == 24
