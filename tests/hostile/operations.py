"""Random sequences of operations on many threads, each answer held against what a simple model of the library says.

The model is a table: what a call must answer depends on the arguments alone, so the first answer to a question, got
with one thread in a context of its own, is the answer to every later one, to the bit, whatever the order, the number of
threads and what others do meanwhile.

usage: operations.py [--seconds S] [--threads N] [--seed N] [--report S]
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import eman

Question = tuple[Any, ...]

CREATURES = [
    eman.creatures.creature(species=species, vertices=800, seed=seed, mesh_seed=seed)
    for seed, species in enumerate(("horse", "lizard", "monkey"))
]
POSES = 2


def positions(which: int, pose: int) -> np.ndarray:
    """Of a creature's vertices, as it was made or bent."""
    x, y, z = CREATURES[which].vertices.T
    return np.stack([x + 0.2 * pose * np.sin(2 * y), y, z + 0.1 * pose * x * y], 1)


NETWORKS = [
    ("default", {"width": 4, "hidden": 16, "blocks": 1}),
    ("authors", {"width": 4, "hidden": 16, "blocks": 1}),
    ("default", {"kind": "gem", "features": "get", "width": 4, "hidden": 16, "blocks": 1}),
    ("default", {"kind": "spiral", "hidden": 16}),
    ("surface", {"width": 8}),
]
POWERS = [(0.7,), (0.5, 0.7), (-2.0, 1.0, 3.0)]
CLASSES = 20
STEPS = 6


def digest(*answers: Any) -> str:
    """A short name of arrays, bytes and numbers."""
    found = hashlib.blake2b(digest_size=12)
    for answer in answers:
        found.update(answer if isinstance(answer, bytes) else np.ascontiguousarray(answer).tobytes())
    return found.hexdigest()


def network(which: int, context: eman.Context) -> eman.Model:
    preset, fields = NETWORKS[which]
    return eman.Model(preset, classes=CLASSES, seed=which, context=context, **fields)


def body(which: int, pose: int, context: eman.Context) -> eman.Mesh:
    return eman.Mesh(positions(which, pose), CREATURES[which].faces, context=context)


def training(which: int, on: int, context: eman.Context) -> eman.Trainer:
    with network(which, context) as model:
        trainer = eman.Trainer(model, epochs=STEPS // 2, lr=0.003, seed=on)
    for pose in range(2):
        with body(on, pose, context) as mesh:
            trainer.add(mesh, CREATURES[on].labels)
    return trainer


class Answers:
    """The model: what is answered to each question, asked once of a single thread."""

    def __init__(self) -> None:
        self._known: dict[Question, str] = {}
        self._lock = threading.Lock()
        self._context = eman.Context(threads=1)

    def __getitem__(self, question: Question) -> str:
        with self._lock:
            if question not in self._known:
                self._known[question] = getattr(self, "_" + question[0])(*question[1:])
            return self._known[question]

    def _features(self, which: int, pose: int, powers: int) -> str:
        with body(which, pose, self._context) as mesh:
            return features(mesh, powers)

    def _labels(self, net: int, which: int, pose: int) -> str:
        with body(which, pose, self._context) as mesh, network(net, self._context) as model:
            return labels(model, mesh)

    def _file(self, net: int) -> str:
        with network(net, self._context) as model:
            return digest(model.to_bytes())

    def _step(self, net: int, on: int, number: int) -> str:
        with training(net, on, self._context) as trainer:
            for _ in range(number):
                step = trainer.step()
            return digest(step.loss, step.gradient_norm)


def features(mesh: eman.Mesh, powers: int) -> str:
    return digest(mesh.reltan(POWERS[powers]), mesh.get_features(), mesh.neighbors[1], mesh.vertex_normals)


def labels(model: eman.Model, mesh: eman.Mesh) -> str:
    return digest(model.predict(mesh), *model.top(mesh, 3))


class Wrong(AssertionError):
    """An answer that is not the model's."""


class Host:
    """One thread of a host: it owns handles, and uses some that all share.

    Parameters
    ----------
    seed : int
        Of the sequence.
    answers : Answers
        What to expect.
    contexts : list of Context
        Where it makes its handles.
    shared : list of (Model, int)
        Models that the other hosts use at the same time, and their networks.
    folder : Path
        For its files.
    """

    def __init__(
        self,
        seed: int,
        answers: Answers,
        contexts: list[eman.Context],
        shared: list[tuple[eman.Model, int]],
        folder: Path,
    ) -> None:
        self.random = random.Random(seed)
        self.answers, self.contexts, self.shared, self.folder = answers, contexts, shared, folder
        self.meshes: list[tuple[eman.Mesh, int, int]] = []
        self.trainers: list[tuple[eman.Trainer, int, int, int]] = []
        self.done: Counter[str] = Counter()

    def run(self) -> None:
        """One operation."""
        kinds: dict[Callable[[], None], int] = {
            self.make: 4, self.make_badly: 2, self.move: 4, self.move_badly: 2, self.examine: 4, self.label: 6,
            self.cancel: 3, self.file: 2, self.corrupt: 2, self.learn: 6, self.save_training: 2, self.starve: 2,
            self.free: 3,
        }  # fmt: skip
        operation = self.random.choices(list(kinds), list(kinds.values()))[0]
        operation()
        self.done[operation.__name__] += 1

    def expect(self, got: Any, *question: Any) -> None:
        if got != self.answers[question]:
            raise Wrong(f"{question}: {got} is not {self.answers[question]}")

    def refused(self, error: type[Exception], says: str, call: Callable[[], Any]) -> None:
        try:
            call()
        except error as found:
            if says not in str(found):
                raise Wrong(f"{found!r} does not say {says!r}") from found
        else:
            raise Wrong(f"no {error.__name__} that says {says!r}")

    def context(self) -> eman.Context:
        return self.random.choice(self.contexts)

    def mesh(self) -> int:
        if not self.meshes:
            self.make()
        return self.random.randrange(len(self.meshes))

    def make(self) -> None:
        which, pose = self.random.randrange(len(CREATURES)), self.random.randrange(POSES)
        self.meshes.append((body(which, pose, self.context()), which, pose))
        if len(self.meshes) > 6:
            self.meshes.pop(0)[0].close()

    def make_badly(self) -> None:
        made = self.random.choice(CREATURES)
        vertices, faces, at = made.vertices.copy(), made.faces.copy(), self.random.randrange(len(made.faces))
        if self.random.random() < 0.5:
            faces[at, 1] = len(vertices) + at
            error = f"face {at}: vertex index {len(vertices) + at} is out of range"
        else:
            vertices[faces[at, 0], 2] = np.nan
            error = f"vertex {faces[at, 0]}: coordinate z is NaN"
        self.refused(eman.InvalidMeshError, error, lambda: eman.Mesh(vertices, faces, context=self.context()))

    def move(self) -> None:
        at, pose = self.mesh(), self.random.randrange(POSES)
        mesh, which, _ = self.meshes[at]
        mesh.update(positions(which, pose))
        self.meshes[at] = mesh, which, pose

    def move_badly(self) -> None:
        mesh, which, pose = self.meshes[self.mesh()]
        vertices = positions(which, 1 - pose)
        at = self.random.randrange(len(vertices))
        vertices[at, 0] = np.inf
        self.refused(eman.InvalidMeshError, f"vertex {at}: coordinate x is +Inf", lambda: mesh.update(vertices))
        self.refused(eman.InvalidArgumentError, "vertices", lambda: mesh.update(vertices[1:]))
        self.expect(features(mesh, 0), "features", which, pose, 0)

    def examine(self) -> None:
        mesh, which, pose = self.meshes[self.mesh()]
        powers = self.random.randrange(len(POWERS))
        self.expect(features(mesh, powers), "features", which, pose, powers)
        if mesh.report().component_count != 1:
            raise Wrong("a body has one component")

    def label(self) -> None:
        mesh, which, pose = self.meshes[self.mesh()]
        if self.random.random() < 0.6:
            model, net = self.random.choice(self.shared)
            self.expect(labels(model, mesh), "labels", net, which, pose)
            return
        net = self.random.randrange(len(NETWORKS))
        with network(net, self.context()) as model:
            self.expect(labels(model, mesh), "labels", net, which, pose)

    def cancel(self) -> None:
        """In the middle of a call, which changes nothing."""
        mesh, which, pose = self.meshes[self.mesh()]
        model, net = self.random.choice(self.shared)
        moment = self.random.random()

        class Enough(Exception):
            pass

        def stop(fraction: float) -> None:
            if fraction >= moment:
                raise Enough

        with contextlib.suppress(Enough):
            model.predict(mesh, progress=stop)
        self.expect(labels(model, mesh), "labels", net, which, pose)

    def file(self) -> None:
        net = self.random.randrange(len(NETWORKS))
        path = self.folder / "model.safetensors"
        with network(net, self.context()) as model:
            model.save(path)
        with eman.Model.load(path, context=self.context()) as model:
            self.expect(digest(model.to_bytes()), "file", net)

    def corrupt(self) -> None:
        model, _ = self.random.choice(self.shared)
        data = bytearray(model.to_bytes())
        del data[self.random.randrange(len(data)) :]
        self.refused(eman.InvalidModelError, "", lambda: eman.Model.from_bytes(bytes(data), context=self.context()))

    def learn(self) -> None:
        if not self.trainers:
            net, on = self.random.randrange(len(NETWORKS)), self.random.randrange(len(CREATURES))
            self.trainers.append((training(net, on, self.context()), net, on, 0))
        trainer, net, on, steps = self.trainers.pop()
        if steps == STEPS:
            self.refused(eman.InvalidArgumentError, "", trainer.step)
            trainer.close()
            return
        step = trainer.step()
        self.expect(digest(step.loss, step.gradient_norm), "step", net, on, steps + 1)
        self.trainers.append((trainer, net, on, steps + 1))

    def save_training(self) -> None:
        if not self.trainers:
            return
        trainer, net, on, steps = self.trainers.pop()
        path = self.folder / "training.safetensors"
        trainer.save(path)
        trainer.close()
        trainer = eman.Trainer.load(path, context=self.context())
        for pose in range(2):
            with body(on, pose, self.context()) as mesh:
                trainer.add(mesh, CREATURES[on].labels)
        self.trainers.append((trainer, net, on, steps))

    def starve(self) -> None:
        """Where memory is limited a call is refused, and what was there stays."""
        mesh, which, pose = self.meshes[self.mesh()]
        with eman.Context(memory_limit=self.random.choice((1 << 14, 1 << 18, 1 << 20))) as poor:
            with contextlib.suppress(eman.OutOfMemoryError), network(0, poor) as model:
                model.predict(mesh)
            self.refused(eman.OutOfMemoryError, "", lambda: [body(which, pose, poor) for _ in range(10)])
            if poor.memory_used > poor.memory_limit:
                raise Wrong(f"{poor.memory_used} bytes of {poor.memory_limit}")
        self.expect(features(mesh, 0), "features", which, pose, 0)

    def free(self) -> None:
        if self.meshes and self.random.random() < 0.5:
            mesh, *_ = self.meshes.pop(self.random.randrange(len(self.meshes)))
            mesh.close()
            self.refused(eman.InvalidArgumentError, "closed", mesh.get_features)
        elif self.trainers:
            self.trainers.pop()[0].close()

    def close(self) -> None:
        for owned in (*self.meshes, *self.trainers):
            owned[0].close()


def resident() -> int:
    """Bytes in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def threads() -> int:
    """Threads of this process, those of Go among them."""
    return len(list(Path("/proc/self/task").iterdir()))


def checksums(answers: Answers, context: eman.Context) -> str:
    """Of some answers, asked anew."""
    found = []
    for net in range(len(NETWORKS)):
        with body(0, 0, context) as mesh, network(net, context) as model:
            found.append(labels(model, mesh))
            if found[-1] != answers["labels", net, 0, 0]:
                raise Wrong(f"network {net} answers {found[-1]}")
    return digest("".join(found).encode())


def work(seconds: float, hosts: int, seed: int, report: float) -> Counter[str]:
    """Operations on so many threads for so long; returns how many of each kind.

    Raises
    ------
    Wrong
        If an answer was wrong, or memory or threads have grown.
    """
    answers = Answers()
    contexts = [eman.Context(threads=n) for n in (1, 2, 3)]
    shared = [(network(net, contexts[net % 3]), net) for net in range(len(NETWORKS))]
    failures: list[BaseException] = []
    end = time.monotonic() + seconds

    def act(host: Host) -> None:
        try:
            while time.monotonic() < end and not failures:
                host.run()
            host.close()
        except BaseException as error:
            failures.append(error)

    with tempfile.TemporaryDirectory() as folder:
        made = []
        for number in range(hosts):
            place = Path(folder) / str(number)
            place.mkdir()
            made.append(Host(seed * 1000 + number, answers, contexts, shared, place))
        first = checksums(answers, contexts[1])
        running = [threading.Thread(target=act, args=(host,)) for host in made]
        for thread in running:
            thread.start()
        sizes: list[tuple[int, int]] = []
        while any(thread.is_alive() for thread in running):
            time.sleep(max(0, min(report, end - time.monotonic())) or 0.1)
            sizes.append((resident(), threads()))
            total = sum(sum(host.done.values()) for host in made)
            print(f"{total} operations, {sizes[-1][0] >> 20} MB, {sizes[-1][1]} threads", file=sys.stderr, flush=True)
        for thread in running:
            thread.join()
    if failures:
        raise failures[0]
    if checksums(answers, contexts[1]) != first:
        raise Wrong("the answers at the end are not those at the beginning")
    for model, _ in shared:
        model.close()
    eman.trim()  # what is kept for later calls
    for context in contexts:
        if context.memory_used:
            raise Wrong(f"{context.memory_used} bytes are still in use")
    # After a tenth of the time everything has been used. What the hosts hold differs from one moment to the next by a
    # third, so that the middle of many tells whether it grows, not the largest.
    warm = sizes[len(sizes) // 10 :]
    third = len(warm) // 3 + 1
    memory, count = (statistics.median(column) for column in zip(*warm[:third]))
    late_memory, late_count = (statistics.median(column) for column in zip(*warm[-third:]))
    print(
        f"medians: {memory / 1e6:.0f} MB, {count} threads at first; {late_memory / 1e6:.0f} MB, {late_count} at last",
        file=sys.stderr,
    )
    if seconds >= 600 and (late_memory > 1.05 * memory or late_count > count + 2):
        raise Wrong(f"{memory} bytes and {count} threads became {late_memory} and {late_count}")
    return sum((host.done for host in made), Counter())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=float, default=10, help="seconds between two lines")
    given = parser.parse_args()
    done = work(given.seconds, given.threads, given.seed, given.report)
    print(", ".join(f"{count} {name}" for name, count in sorted(done.items())))


if __name__ == "__main__":
    main()
