"""Contexts: threads, memory limit, instruction set; facts about the library."""

from __future__ import annotations

import os

import numpy as np
import pytest

import eman
from eman import _capi, context
from eman.creatures import Creature

from .conftest import TETRAHEDRON


def test_defaults() -> None:
    made = eman.Context()
    assert made.threads == len(os.sched_getaffinity(0)) or made.threads == os.cpu_count()
    assert made.memory_limit == made.memory_used == made.memory_peak == 0
    forced = os.environ.get("EMAN_TEST_ISA")
    assert made.instruction_set in ((forced,) if forced else ("generic", "avx2", "avx512", "neon"))
    assert repr(made) == f"Context(threads={made.threads}, instruction_set={made.instruction_set!r})"


def test_generic_is_everywhere_and_others_agree(horse: Creature) -> None:
    generic = eman.Context(instruction_set="generic")
    assert generic.instruction_set == "generic"
    plain = eman.Mesh(horse, context=generic).reltan()
    for name in ("avx2", "avx512", "neon"):
        try:
            other = eman.Context(instruction_set=name)
        except eman.UnsupportedError:
            continue
        assert other.instruction_set == name
        assert np.abs(eman.Mesh(horse, context=other).reltan() - plain).max() <= 1e-12


def test_memory_is_counted_and_given_back(horse: Creature) -> None:
    made = eman.Context()
    mesh = eman.Mesh(horse, context=made)
    assert mesh.context is made
    used = made.memory_used
    assert used >= mesh.vertices.nbytes + mesh.faces.nbytes
    mesh.close()
    assert made.memory_used == 0
    assert made.memory_peak >= used


def test_memory_limit(horse: Creature) -> None:
    small = eman.Context(memory_limit=50_000)
    assert small.memory_limit == 50_000
    with pytest.raises(eman.OutOfMemoryError) as caught:
        eman.Mesh(horse, context=small)
    assert isinstance(caught.value, MemoryError)
    assert small.memory_used == 0
    assert eman.Mesh(*TETRAHEDRON, context=small).vertex_count == 4
    assert "memory_limit=50000" in repr(small)


def test_meshes_outlive_their_context(horse: Creature) -> None:
    with eman.Context(threads=1) as made:
        mesh = eman.Mesh(horse, context=made)
    assert repr(made) == "Context(closed)"
    assert mesh.reltan().shape == (800, 2, 2)
    with pytest.raises(eman.InvalidArgumentError, match="the context is closed"):
        eman.Mesh(horse, context=made)
    with pytest.raises(eman.InvalidArgumentError, match="the context is closed"):
        _ = made.threads
    made.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": -1}, "threads must be between 0 and"),
        ({"threads": 2**31}, "threads must be between 0 and"),
        ({"memory_limit": -1}, "memory_limit must be between 0 and"),
        ({"memory_limit": 2**63}, "memory_limit must be between 0 and"),
        ({"instruction_set": "mmx"}, "instruction_set must be one of 'auto', 'generic'"),
        ({"instruction_set": 2}, "instruction_set must be one of"),
    ],
)
def test_refuses(options: dict[str, object], message: str) -> None:
    with pytest.raises(eman.InvalidArgumentError, match=message):
        eman.Context(**options)  # type: ignore[arg-type]


def test_unsupported_instruction_set() -> None:
    import platform

    foreign = "avx2" if platform.machine() in ("aarch64", "arm64") else "neon"
    with pytest.raises(eman.UnsupportedError, match=foreign):
        eman.Context(instruction_set=foreign)


def test_default_context_is_shared() -> None:
    first, second = eman.Mesh(*TETRAHEDRON), eman.Mesh(*TETRAHEDRON)
    assert first.context is second.context is context.default_context()


def test_build_info() -> None:
    facts = eman.build_info()
    assert facts["abi_version"] == _capi.library().eman_abi_version()
    assert facts["version"] == _capi.library().eman_version_string().decode()
    assert facts["go_version"].startswith("go1.")
    assert facts["threads"] >= 1
    assert {"platform", "instruction_set"} <= set(facts)
    assert os.path.exists(facts["library"])


def test_trim() -> None:
    eman.Mesh(eman.creatures.creature(0, 800)).close()
    eman.trim()
    assert eman.Mesh(*TETRAHEDRON).vertex_count == 4


def test_log_goes_to_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="eman"):
        context._log(None, 1, b"a fault")
        context._log(None, 3, b"a note")
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [("ERROR", "a fault"), ("INFO", "a note")]
