"""Kills, stops or cuts off one of four ranks at random instants.

usage: rank_faults.py FOLDER INSTANTS SECONDS SEED [KIND.FAULT...]

Instants that have not begun after SECONDS are left out.  They are after the
first checkpoint of a run that saves each epoch; one in eight may be before.  The
other ranks have to end within a minute with status 4, and to name the rank and
its last step; each checkpoint has to be that of a run without a fault, to the
bit; and two ranks have to resume the run and to end as that one.

Kinds: shared (memory), mpi (OpenMPI on one machine), machines (two network
namespaces, which needs root).  Faults: kill, stop (SIGSTOP), cut (the link of
the rank's machine, of machines alone).
"""
import collections
import concurrent.futures
import filecmp
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
RANKS, EPOCHS, SAMPLES = 4, 20, 150
LIMIT = 60  # seconds
WAYS = ["shared.kill", "shared.stop", "mpi.kill", "mpi.stop", "machines.kill",
        "machines.stop", "machines.cut"]

# Starts a rank under mpirun, which reports no rank's status, and from a machine
# that is cut off no output.
RANK = """#!/bin/sh
"$@" 2>"said.$OMPI_COMM_WORLD_RANK"
echo $? >"status.$OMPI_COMM_WORLD_RANK"
"""

# Four ranks on two machines.
MACHINES = """work=$PWD here=$1
shift
. "$here/namespaces.sh"
machines_open 1 2
trap machines_close EXIT
echo $prefix >prefix
mpirun_on 10.77.0.1:2,10.77.0.2:2 --enable-recovery -x TRIAL "$@"
"""


def idx(path, dims, values):
    header = bytes([0, 0, 8, len(dims)])
    for dim in dims:
        header += dim.to_bytes(4, "big")
    path.write_bytes(header + values)


def prepare(folder):
    """Data, the trainer, and a run without a fault."""
    draw = random.Random(1)
    (folder / "data").mkdir(parents=True)
    for split in ["train", "t10k"]:
        idx(folder / "data" / f"{split}-images-idx3-ubyte", [SAMPLES, 12, 12],
            draw.randbytes(SAMPLES * 144))
        idx(folder / "data" / f"{split}-labels-idx1-ubyte", [SAMPLES],
            bytes(i % 8 for i in range(SAMPLES)))
    model = (HERE / "tiny.net").read_text().replace("keep 2", "keep 1000")
    (folder / "tiny.net").write_text(model)
    (folder / "rank").write_text(RANK)
    (folder / "rank").chmod(0o755)
    build = [os.environ["SINTER"], "build", folder / "tiny.net", "--set",
             f"shards={RANKS}", "--set", f"epochs={EPOCHS}", "--set",
             "optimizer_shards=3", "-o", folder / "trainer"]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([folder / "trainer", "--data", folder / "data", "--out",
                    folder / "reference", "--threads=1", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)


class Trial:
    """Ranks of one kind, in a folder of their own."""

    def __init__(self, folder, kind, name, count=RANKS, options=()):
        self.folder, self.kind, self.count = folder / name, kind, count
        self.folder.mkdir(exist_ok=True)
        self.name = f"{os.getpid()}.{name}.{len(options)}"
        self.outputs = []
        for old in self.folder.glob("status.*"):
            old.unlink()
        environment = dict(os.environ, TRIAL=self.name,
                           OMPI_ALLOW_RUN_AS_ROOT="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        program = [folder / "trainer", "--data", folder / "data", "--out",
                   "out", "--threads=1", "--quiet", *options]
        if kind == "shared":
            self.started = [self.start(program, dict(
                environment, RANK=str(rank), WORLD_SIZE=str(count),
                LOCAL_WORLD_SIZE=str(count), TORCHELASTIC_RUN_ID=self.name))
                for rank in range(count)]
        elif kind == "mpi":
            self.started = [self.start(
                ["mpirun.openmpi", "--enable-recovery", "--oversubscribe",
                 "--bind-to", "none", "-np", str(count), folder / "rank",
                 *program, "--collectives=mpi"], environment)]
        else:
            self.started = [self.start(["sh", "-c", MACHINES, "sh", HERE,
                                        folder / "rank", *program],
                                       environment)]

    def start(self, command, environment):
        output = self.folder / f"output.{len(self.outputs)}"
        self.outputs.append(output)
        with output.open("wb") as to:
            return subprocess.Popen(command, cwd=self.folder, env=environment,
                                    stdin=subprocess.DEVNULL, stdout=to,
                                    stderr=subprocess.STDOUT,
                                    start_new_session=True)

    def process(self, rank):
        """The process of a rank; None: it is not there."""
        words = {f"TRIAL={self.name}".encode(),
                 (f"RANK={rank}" if self.kind == "shared" else
                  f"OMPI_COMM_WORLD_RANK={rank}").encode()}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (os.readlink(entry / "exe").endswith("/trainer") and
                        words <= set((entry / "environ").read_bytes()
                                     .split(b"\0"))):
                    return int(entry.name)
            except OSError:
                pass
        return None

    def status(self, rank):
        """None: it runs."""
        if self.kind == "shared":
            status = self.started[rank].poll()
            return 128 - status if status is not None and status < 0 else status
        try:
            return int((self.folder / f"status.{rank}").read_text())
        except (OSError, ValueError):
            return None

    def over(self):
        return all(p.poll() is not None for p in self.started)

    def wait(self, ranks, seconds):
        until = time.monotonic() + seconds
        while (any(self.status(r) is None for r in ranks) and
               time.monotonic() < until):
            time.sleep(0.05)

    def said(self):
        files = self.outputs + list(self.folder.glob("said.*"))
        return "".join(f.read_text(errors="replace") for f in files)

    def end(self):
        """Ends what is left, and its network."""
        for rank in range(self.count):
            process = self.process(rank)
            if process is not None:
                os.kill(process, signal.SIGKILL)
        for process in self.started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                subprocess.run(["pkill", "-KILL", "-s", str(process.pid),
                                "mpirun|unshare"])
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)


def harm(trial, rank, fault):
    """False: the rank has ended."""
    process = None
    while process is None:
        if trial.status(rank) is not None or trial.over():
            return False
        process = trial.process(rank)
    if fault == "cut":
        prefix = (trial.folder / "prefix").read_text().strip()
        machine = f"{prefix}-{rank // 2 + 1}"
        links = subprocess.run(["ip", "-n", machine, "-o", "link"], check=True,
                               capture_output=True, text=True).stdout
        link = re.search(r"tun[0-9.]+", links).group()
        subprocess.run(["ip", "-n", machine, "link", "set", link, "down"],
                       check=True)
    else:
        try:
            os.kill(process, signal.SIGKILL if fault == "kill" else
                    signal.SIGSTOP)
        except ProcessLookupError:
            return False
    return True


def explained(trial, rank, harmed):
    """Whether a rank has named one of the harmed."""
    of = "|".join(map(str, harmed))
    sentences = [
        rf"rank ({of}) (ended|sent no heartbeat for 30 s) after step [0-9]+, "
        rf"so rank {rank} ends after step [0-9]+",
        rf"rank ({of}) ended before the run began"]
    if 0 in harmed:
        sentences.append(rf"rank {rank} does not find rank 0")
    else:
        sentences.append(rf"of {RANKS} ranks came within .* missing: ({of})")
    return any(re.search(s, trial.said()) for s in sentences)


def saved(trial):
    return sorted((trial.folder / "out").glob("step-*.safetensors"))


def complaint(trial, rank, fault, harmed):
    """The first thing that is not as it should be; None: all is well."""
    reference = trial.folder.parent / "reference"
    last = saved(trial)[-1:]
    far = [r for r in range(RANKS) if r // 2 != rank // 2]
    near = [r for r in range(RANKS) if r // 2 == rank // 2]
    others = [r for r in range(RANKS) if r != rank or fault == "cut"]
    statuses = [trial.status(r) for r in others]
    ended = last and last[0].name == max(
        p.name for p in reference.glob("step-*.safetensors"))
    if None in statuses:
        return f"ranks do not end: {statuses}"
    if statuses != [0] * len(others) or not ended:
        if set(statuses) != {4}:
            return f"statuses {statuses}"
        for r in others:
            named = (far if r in near else near) if fault == "cut" else [rank]
            if harmed and not explained(trial, r, named):
                return f"rank {r} does not explain its end"
    for path in saved(trial):
        if not filecmp.cmp(path, reference / path.name, shallow=False):
            return f"{path.name} differs"
    return None


def resume(folder, kind, name):
    """Two ranks go on from the newest checkpoint, to the end."""
    kind = "mpi" if kind == "mpi" else "shared"
    again = Trial(folder, kind, name, 2, ["--resume"])
    again.wait(range(2), 10 * LIMIT)
    again.end()
    if [again.status(0), again.status(1)] != [0, 0]:
        return f"resumed: statuses {again.status(0)}, {again.status(1)}"
    newest = saved(again)[-1]
    reference = sorted((folder / "reference").glob("step-*.safetensors"))[-1]
    if newest.name != reference.name or not filecmp.cmp(newest, reference,
                                                        shallow=False):
        return "the resumed run ends with other weights"
    return None


def sleep_until_saved(trial):
    while not saved(trial) and not trial.over():
        time.sleep(0.01)


def run(folder, number, way, share, rank, seconds, until):
    """The name of the result, and the seconds until the others ended."""
    kind, fault = way.split(".")
    if time.monotonic() > until:
        return "left out", 0
    trial = Trial(folder, kind, str(number))
    if number % 8 != 7:
        sleep_until_saved(trial)
    time.sleep(share * seconds)
    harmed = harm(trial, rank, fault)
    since = time.monotonic()
    others = [r for r in range(RANKS) if r != rank or fault == "cut"]
    trial.wait(others, LIMIT if harmed else 10 * LIMIT)
    # Ranks of several machines wait for each other for two minutes; mpirun would
    # end them if it did not let ranks recover.
    began = (trial.folder / "out").exists()
    if not began:
        trial.wait(others, 150 - LIMIT)
    took = time.monotonic() - since
    why = complaint(trial, rank, fault, harmed)
    trial.end()
    found = ("finished before" if not harmed else
             "harmed" if saved(trial) else
             "harmed before the first checkpoint" if began else
             "harmed before the ranks met")
    if why is None and saved(trial):
        why = resume(folder, kind, str(number))
    if why is not None:
        return f"FAILED: {why}: rank {rank} in {trial.folder}", took
    shutil.rmtree(trial.folder)
    return found, took


def duration(folder, kind):
    """Seconds of a run after its first checkpoint."""
    trial = Trial(folder, kind, f"{kind}.whole")
    sleep_until_saved(trial)
    began = time.monotonic()
    trial.wait(range(RANKS), 10 * LIMIT)
    statuses = [trial.status(r) for r in range(RANKS)]
    trial.end()
    if statuses != [0] * RANKS:
        sys.exit(f"{kind}: statuses {statuses}: {trial.said()}")
    return time.monotonic() - began


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    instants, until = int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
    draw, ways = random.Random(int(sys.argv[4])), sys.argv[5:] or WAYS
    prepare(folder)
    seconds = {kind: duration(folder, kind)
               for kind in dict.fromkeys(w.split(".")[0] for w in ways)}
    counts, longest = collections.Counter(), collections.defaultdict(float)
    with concurrent.futures.ThreadPoolExecutor(4 * os.cpu_count()) as pool:
        trials = []
        for number in range(instants):
            way = ways[number % len(ways)]
            trials.append((way, pool.submit(
                run, folder, number, way, draw.random(), draw.randrange(RANKS),
                seconds[way.split(".")[0]], until)))
        for way, trial in trials:
            result, took = trial.result()
            counts[way, result.split(":")[0]] += 1
            longest[way, result] = max(longest[way, result], took)
            if result.startswith("FAILED"):
                print(f"{way}: {result}", flush=True)
    for (way, result), count in sorted(counts.items()):
        print(f"{way}: {result}: {count}, the others ended within "
              f"{longest[way, result]:.1f} s")
    failed = sum(n for (_, result), n in counts.items() if result == "FAILED")
    out = sum(n for (_, result), n in counts.items() if result == "left out")
    print(f"{instants - out} instants, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
