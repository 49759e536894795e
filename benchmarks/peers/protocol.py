"""What every peer's program does: get ready, then repeat its work at each line on standard input and answer with one line of JSON."""

import json
import sys
import time


def serve(build):
    """``build(task)`` returns (work, units): a function without arguments, and what one call of it does (vehicle-steps, say).

    What ``work`` returns is sent as the answer: a place at the end, to judge the error by, or nothing.
    """
    answer = sys.stdout
    sys.stdout = sys.stderr  # whatever a library prints must not disturb the answers
    start = time.perf_counter()
    work, units = build(sys.argv[1])
    work()
    print(json.dumps({"units": units, "ready_s": time.perf_counter() - start}), file=answer, flush=True)
    for _ in sys.stdin:
        print(json.dumps({"end": work()}), file=answer, flush=True)
