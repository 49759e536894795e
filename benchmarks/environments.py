"""Virtual environments of the peers, made when first needed, and the peers at work in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

from benchmarks.measure import Record, compare, skipped

HERE = Path(__file__).parent
FOLDER = HERE / ".peers"
# A version each, so that a comparison can be made again.
PEERS = {
    "mujoco": ["mujoco==4.0.0", "numpy"],
    "crazyflow": ["crazyflow==0.4.0"],
    "l2f": ["l2f==2.0.18", "numpy"],  # compiles for ten minutes and more
    "archimedes": ["archimedes==0.4.4"],
    "rotorpy": ["rotorpy[batched]==3.0.0"],
}


class Unavailable(RuntimeError):
    """A peer that cannot be installed or does not run here."""


def python_of(peer: str) -> Path:
    """The peer's interpreter; installs the peer if need be."""
    folder = FOLDER / peer
    python, stamp = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python", folder / "installed.json"
    wanted = json.dumps(PEERS[peer])
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", *PEERS[peer]], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"{peer} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        stamp.write_text(wanted)
    return python


def version_of(peer: str) -> str:
    code = f"from importlib.metadata import version; print(version({peer!r}))"
    return subprocess.run([python_of(peer), "-c", code], capture_output=True, text=True, check=True).stdout.strip()


class Remote:
    """A peer's program, ready to repeat its work at every call."""

    def __init__(self, peer: str, task: str) -> None:
        script = HERE / "peers" / f"run_{peer}.py"
        # As shipped: without the XLA setting that this process has made for itself.
        environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
        self.process = subprocess.Popen(
            [python_of(peer), script, task],
            cwd=FOLDER,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.name = f"{peer} {version_of(peer)}"
        began = time.perf_counter()
        ready = self._answer()
        self.units, self.ready_s = ready["units"], time.perf_counter() - began

    def __call__(self) -> list[float] | None:
        """Do the work once; where it flew to, if the peer's program says."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._answer()["end"]

    def _answer(self) -> dict:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        line = self.process.stdout.readline()
        while line and not line.startswith("{"):  # what a library prints while it is imported
            line = self.process.stdout.readline()
        if not line:
            said = self.process.stderr.read().strip().splitlines()
            raise Unavailable(f"the peer's program ended: {said[-1] if said else 'without a word'}")
        return json.loads(line)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def against(peer: str, task: str, names: dict, fly, common: dict) -> Record:
    """Against a peer in its own environment, in turns with it; a record without numbers where it does not run."""
    name = f"{names['name']}_{peer}" + ("_euler" if "euler" in task else "")
    try:
        remote = Remote(peer, task)
    except Unavailable as error:
        return skipped(name, names["ours_name"], peer, str(error), common["precision"], common["step_s"])
    try:
        return compare(name, names["ours_name"], remote.name, fly, remote, peer_units=remote.units, **common)
    except Unavailable as error:
        return skipped(name, names["ours_name"], peer, str(error), common["precision"], common["step_s"])
    finally:
        remote.close()
