"""Life in a process: garbage, closing, threads, fork, pickling, Ctrl-C."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import eman
from eman._handle import Handle
from eman.creatures import Creature

from .conftest import TETRAHEDRON

LIBRARY = eman.build_info()["library"]
PARENT = Path(eman.__file__).parent.parent

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def script(text: str, folder: Path, timeout: float = 60) -> str:
    """Run a file as a program of its own (spawned workers import it again); its output."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": str(PARENT), "EMAN_LIBRARY": LIBRARY},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class TestGarbage:
    def test_meshes_are_freed(self, horse: Creature) -> None:
        context = eman.Context()
        mesh = eman.Mesh(horse, context=context)
        gone = weakref.ref(mesh)
        assert context.memory_used > 0
        del mesh
        gc.collect()
        assert gone() is None
        assert context.memory_used == 0

    def test_meshes_in_cycles_are_freed(self, horse: Creature) -> None:
        context = eman.Context()
        mesh = eman.Mesh(horse, context=context)
        mesh.myself = mesh  # type: ignore[attr-defined]
        del mesh
        gc.collect()
        assert context.memory_used == 0

    def test_reports_transforms_and_failures_leave_nothing(self, horse: Creature) -> None:
        context = eman.Context()
        mesh = eman.Mesh(horse, context=context)
        mesh.update(horse.vertices)  # takes the room that further updates use
        used = context.memory_used
        for _ in range(20):
            mesh.report()
            eman.transforms.gauge(mesh)
            eman.transforms.similarity(mesh)
            eman.transforms.permutation(mesh)
            with pytest.raises(eman.InvalidMeshError):
                mesh.update(np.full((800, 3), np.nan))
            with pytest.raises(eman.InvalidMeshError):
                eman.Mesh(horse.vertices[:-1], horse.faces, context=context)
        gc.collect()
        assert context.memory_used == used

    def test_resident_memory_stays_flat(self, tmp_path: Path) -> None:
        grown = script(
            """
            import numpy as np, eman
            made = eman.creatures.creature(0, 2000)
            def resident():
                return int(open("/proc/self/statm").read().split()[1]) * 4096
            def work():
                for _ in range(300):
                    mesh = eman.Mesh(made)
                    mesh.reltan(); mesh.report(); mesh.edge_angles
                eman.trim()
            work()
            before = resident()
            work(); work()
            print(resident() - before)
            """,
            tmp_path,
        )
        assert int(grown) < 8_000_000

    def test_interpreter_ends_cleanly_with_live_objects(self, tmp_path: Path) -> None:
        printed = script(
            """
            import eman
            made = eman.creatures.creature(0, 800)
            kept = [eman.Mesh(made, context=eman.Context(threads=2)) for _ in range(5)]
            cycle = [kept]; cycle.append(cycle)
            print("done")
            """,
            tmp_path,
        )
        assert printed == "done"


class TestClosing:
    def test_closed_mesh_says_so(self, horse: Creature) -> None:
        with eman.Mesh(horse) as mesh:
            assert mesh.edge_count == 4788
        assert repr(mesh) == "Mesh(closed)"
        for call in (
            mesh.reltan,
            mesh.report,
            mesh.get_features,
            lambda: mesh.vertices,
            lambda: mesh.edge_angles,
            lambda: mesh.neighbors,
            lambda: mesh.update(horse.vertices),
            lambda: eman.transforms.gauge(mesh),
            lambda: pickle.dumps(mesh),
        ):
            with pytest.raises(eman.InvalidArgumentError, match="the mesh is closed"):
                call()
        mesh.close()

    def test_close_waits_for_users(self) -> None:
        freed: list[object] = []
        handle = Handle("address", freed.append, "thing")  # type: ignore[arg-type]
        with handle as one:
            with handle:
                handle.close()
                assert handle.closed
                assert freed == []
            assert one == "address"
            assert freed == []
        assert freed == ["address"]
        handle.close()
        assert freed == ["address"]
        with pytest.raises(eman.InvalidArgumentError, match="the thing is closed"), handle:
            pass

    def test_close_while_others_compute(self, horse: Creature) -> None:
        for _ in range(20):
            mesh = eman.Mesh(horse)
            ended: list[str] = []

            def work(mesh: eman.Mesh = mesh, ended: list[str] = ended) -> None:
                try:
                    while True:
                        assert mesh.reltan().shape == (800, 2, 2)
                except eman.InvalidArgumentError as error:
                    ended.append(str(error))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(0.005)
            mesh.close()
            for thread in threads:
                thread.join(10)
            assert ended == ["the mesh is closed"] * 4


class TestThreads:
    def test_eight_threads_on_one_mesh(self, horse: Creature) -> None:
        mesh = eman.Mesh(horse)
        expected = mesh.reltan(), mesh.edge_angles, mesh.report().counts
        wrong: list[object] = []

        def work() -> None:
            for _ in range(20):
                got = mesh.reltan(), mesh.edge_angles, mesh.report().counts
                if not all(np.array_equal(a, b) for a, b in zip(got[:2], expected[:2])) or got[2] != expected[2]:
                    wrong.append(got)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong

    def test_errors_stay_on_their_thread(self) -> None:
        """Each thread sees the message of its own call."""
        vertices, faces = TETRAHEDRON
        wrong: list[str] = []

        def work(number: int) -> None:
            bad = faces.copy()
            bad[2, 1] = 100 + number
            for _ in range(200):
                try:
                    eman.Mesh(vertices, bad)
                except eman.InvalidMeshError as error:
                    if f"index {100 + number} is" not in str(error):
                        wrong.append(str(error))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong

    def test_updates_from_another_thread_are_seen_whole(self, horse: Creature) -> None:
        """What a reader gets is of the one position or of the other; edges come and go meanwhile."""
        vertices, faces = TETRAHEDRON
        folded = vertices.copy()
        folded[1] = folded[0]
        mesh = eman.Mesh(vertices, faces)
        stop = threading.Event()

        def move() -> None:
            while not stop.is_set():
                mesh.update(folded)
                mesh.update(vertices)

        mover = threading.Thread(target=move)
        mover.start()
        try:
            expected = [eman.Mesh(p, faces).reltan() for p in (vertices, folded)]
            for _ in range(300):
                got = mesh.reltan()
                assert any(np.array_equal(got, one) for one in expected)
                assert len(mesh.edge_angles) in (10, 12)
        finally:
            stop.set()
            mover.join()


class TestPickle:
    def test_mesh_travels(self, horse: Creature) -> None:
        mesh = eman.Mesh(horse, gauge="random", seed=9, normals="angle")
        other = pickle.loads(pickle.dumps(mesh))
        assert other.options == mesh.options
        assert np.array_equal(other.reltan(), mesh.reltan())
        assert np.array_equal(copy.deepcopy(mesh).frames, mesh.frames)

    def test_custom_gauge_travels(self, horse: Creature) -> None:
        changed = eman.transforms.gauge(eman.Mesh(horse), seed=1).mesh
        other = pickle.loads(pickle.dumps(changed))
        assert np.abs(other.reltan() - changed.reltan()).max() < 1e-13


@needs_fork
class TestFork:
    def test_child_of_a_loaded_library_gets_an_error_at_once(self, tmp_path: Path) -> None:
        printed = script(
            """
            import os, sys, time, numpy as np, eman
            from eman import transforms
            made = eman.creatures.creature(0, 800)
            mesh, context = eman.Mesh(made), eman.Context()
            mesh.reltan()
            child = os.fork()
            if child == 0:
                start = time.monotonic()
                calls = (
                    lambda: eman.Mesh(made), lambda: mesh.reltan(), lambda: mesh.report(), lambda: mesh.edge_count,
                    lambda: mesh.vertices, lambda: mesh.edge_angles, lambda: mesh.neighbors, lambda: mesh.components,
                    lambda: mesh.update(made.vertices), lambda: eman.Context(), lambda: context.threads,
                    lambda: eman.build_info(), lambda: eman.trim(), lambda: transforms.gauge(mesh),
                    lambda: transforms.similarity(mesh), lambda: transforms.permutation(mesh),
                    lambda: transforms.random_angles(3), lambda: mesh.get_features(), lambda: mesh.frames,
                )
                for number, call in enumerate(calls):
                    try:
                        call()
                    except eman.ForkedError as error:
                        assert "fork" in str(error), error
                        continue
                    os._exit(100 + number)
                mesh.close(); context.close()
                del mesh, context
                os._exit(0 if time.monotonic() - start < 5 else 99)
            _, status = os.waitpid(child, 0)
            print(os.waitstatus_to_exitcode(status), mesh.reltan().shape)
            """,
            tmp_path,
        )
        assert printed == "0 (800, 2, 2)"

    def test_fork_before_the_first_call_works(self, tmp_path: Path) -> None:
        printed = script(
            """
            import os, eman
            made = eman.creatures.creature(0, 800)
            child = os.fork()
            if child == 0:
                os._exit(0 if eman.Mesh(made).reltan().shape == (800, 2, 2) else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), eman.Mesh(made).vertex_count)
            """,
            tmp_path,
        )
        assert printed == "0 800"

    def test_fork_while_other_threads_compute(self, tmp_path: Path) -> None:
        """The locks of these bindings may be held by threads that the child does not have."""
        printed = script(
            """
            import os, threading, warnings, eman
            warnings.simplefilter("ignore")
            mesh = eman.Mesh(eman.creatures.creature(0, 800))
            stop = threading.Event()
            def work():
                while not stop.is_set():
                    mesh.vertex_normals
            threads = [threading.Thread(target=work) for _ in range(4)]
            [t.start() for t in threads]
            codes = []
            for _ in range(30):
                child = os.fork()
                if child == 0:
                    try:
                        mesh.vertex_normals
                    except eman.ForkedError:
                        mesh.close()
                        os._exit(0)
                    os._exit(1)
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            stop.set()
            [t.join() for t in threads]
            print(set(codes))
            """,
            tmp_path,
        )
        assert printed == "{0}"


@needs_fork
class TestInterrupt:
    def test_ctrl_c_ends_a_long_call(self, tmp_path: Path) -> None:
        """SIGINT in the middle of RelTan on a large mesh; afterwards everything still works."""
        printed = script(
            """
            import os, signal, threading, time, numpy as np, eman
            n = 700
            x, y = np.meshgrid(np.arange(n, dtype=float), np.arange(n, dtype=float))
            vertices = np.stack([x.ravel(), y.ravel(), np.sin(x + 0.3 * y).ravel()], axis=1)
            corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
            faces = np.concatenate([np.stack([corner, corner + 1, corner + n], 1),
                                    np.stack([corner + 1, corner + n + 1, corner + n], 1)]).astype(np.int32)
            mesh = eman.Mesh(vertices, faces, context=eman.Context(threads=1))
            powers = np.linspace(0.3, 1.7, 64)
            start = time.perf_counter(); mesh.reltan(powers); whole = time.perf_counter() - start
            best = float("inf")
            for _ in range(3):  # on a busy machine a thread may have to wait for its turn
                sent = []
                def interrupt():
                    time.sleep(0.2 * whole)
                    sent.append(time.perf_counter())
                    os.kill(os.getpid(), signal.SIGINT)
                threading.Thread(target=interrupt).start()
                try:
                    mesh.reltan(powers)
                    time.sleep(2 * whole)
                except KeyboardInterrupt:
                    best = min(best, time.perf_counter() - sent[0])
            print("interrupted" if best < 0.5 else f"late {best} of {whole}")
            print(np.array_equal(mesh.reltan((0.5,)), mesh.reltan((0.5,))), mesh.report().component_count)
            """,
            tmp_path,
            timeout=120,
        )
        assert printed.splitlines() == ["interrupted", "True 1"]

    def test_long_calls_off_the_main_thread_and_failures_of_long_calls(self, tmp_path: Path) -> None:
        printed = script(
            """
            import threading, numpy as np, eman, eman.mesh
            eman.mesh._LONG = 0
            made = eman.creatures.creature(0, 800)
            results = []
            thread = threading.Thread(target=lambda: results.append(eman.Mesh(made).reltan()))
            thread.start(); thread.join()
            print(np.array_equal(eman.Mesh(made).reltan(), results[0]))
            broken = made.faces.copy(); broken[7, 0] = 9999
            try:
                eman.Mesh(made.vertices, broken)
            except eman.InvalidMeshError as error:
                print(error)
            """,
            tmp_path,
        )
        assert printed.splitlines() == ["True", "face 7: vertex index 9999 is out of range [0, 800)"]
