"""Sweeps on a Dask cluster: in this process, and on two hosts made of network namespaces."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skycrane.scenario import ScenarioError
from skycrane.sweep.runner import sweep
from tests.sweep.test_sweep import ARGUMENTS, FALL


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "fall.toml"
    path.write_text(FALL)
    return path


def parts(out):
    return {p.name: p.read_bytes() for p in (out / "parts").iterdir()} | {"table": (out / "table.csv").read_bytes()}


@pytest.mark.filterwarnings("ignore")  # of the cluster's own
def test_a_cluster_gives_the_same_bits(scenario, tmp_path):
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, host="127.0.0.1", protocol="tcp://"
    ) as cluster:
        sweep(scenario, out=tmp_path / "dask", engine="dask", address=cluster.scheduler_address, **ARGUMENTS)
    sweep(scenario, out=tmp_path / "here", jobs=1, **ARGUMENTS)
    assert parts(tmp_path / "dask") == parts(tmp_path / "here")


@pytest.mark.filterwarnings("ignore")
def test_nobody_at_the_address(scenario, tmp_path, monkeypatch):
    monkeypatch.setattr("skycrane.sweep.engines.PATIENCE", "1s")
    with pytest.raises(ScenarioError, match="no Dask scheduler answers"):
        sweep(scenario, out=tmp_path, engine="dask", address="tcp://127.0.0.1:9", **ARGUMENTS)


def two_hosts():
    """Two network namespaces with addresses 10.99.0.1 and 10.99.0.2 on one cable."""
    for command in (
        "ip netns add sky1",
        "ip netns add sky2",
        "ip link add sky1 netns sky1 type veth peer name sky2 netns sky2",
        "ip -n sky1 addr add 10.99.0.1/24 dev sky1",
        "ip -n sky2 addr add 10.99.0.2/24 dev sky2",
        *(f"ip -n {n} link set {device} up" for n in ("sky1", "sky2") for device in (n, "lo")),
    ):
        subprocess.run(command.split(), check=True, capture_output=True)


@pytest.mark.hosts
def test_two_hosts_one_of_which_dies(scenario, tmp_path):
    """Scheduler and sweep on one host, a worker on each; the other host's worker is killed in the middle."""
    two_hosts()
    processes = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def host(name, *arguments, **options):
        process = subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, "-m", *arguments], cwd=tmp_path, env=environment, **options
        )
        processes.append(process)
        return process

    try:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        host("sky1", "distributed.cli.dask_scheduler", "--host", "10.99.0.1", "--port", "8786", "--no-dashboard", **quiet)
        time.sleep(3)
        worker = ("distributed.cli.dask_worker", "tcp://10.99.0.1:8786", "--nthreads", "1", "--no-dashboard", "--no-nanny")
        host("sky1", *worker, **quiet)
        other = host("sky2", *worker, **quiet)
        time.sleep(8)
        code = tmp_path / "drive.py"
        arguments = ARGUMENTS | {"samples": 200}
        code.write_text(
            f"from pathlib import Path\nfrom skycrane.sweep.runner import sweep\narguments = {arguments!r}\n"
            f"sweep({str(scenario)!r}, out=Path({str(tmp_path / 'two')!r}), engine='dask', address='tcp://10.99.0.1:8786', **arguments)\n"
        )
        drive = subprocess.Popen(["ip", "netns", "exec", "sky1", sys.executable, str(code)], env=environment)
        processes.append(drive)
        folder = tmp_path / "two" / "parts"
        while drive.poll() is None and len(list(folder.glob("*.json")) if folder.exists() else []) < 10:
            time.sleep(0.05)
        other.kill()
        assert drive.wait(300) == 0
        # Undisturbed, in a process that compiles as the workers do.
        code.write_text(
            code.read_text().replace("'dask'", "'local', jobs=1").replace("address='tcp://10.99.0.1:8786', ", "").replace("/two", "/one")
        )
        subprocess.run([sys.executable, str(code)], env=environment, check=True)
        assert parts(tmp_path / "two") == parts(tmp_path / "one")
        assert len(parts(Path(tmp_path / "two"))) == 51
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for name in ("sky1", "sky2"):
            subprocess.run(["ip", "netns", "del", name], check=False)
