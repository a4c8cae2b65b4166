"""joblib's backend "dask", with three things that a study on many machines needs, while one is played.

A worker with other code or other versions would send other results, and the store would file them as ours: each study
asks its workers first. A task that Dask gives up, because four workers died while at it (`allowed-failures`), has to
end the study: joblib would wait for it without end, since its backend calls back with results only. And tasks have to
last: one client and one scheduler serve all cores, a few hundred tasks a second at best.
"""

import functools
from pathlib import Path

from ..checks import require
from ..engine.fingerprint import digest
from .keys import common

SHORTEST = 2.0      # seconds that a task should last, from dispatch to result; joblib's own backend aims at a tenth


@functools.cache
def library() -> bytes:
    """Digest of the library's files and of the versions it runs on.

    >>> library() == library()
    True
    """
    here = Path(__file__).parents[1]
    files = [(path.relative_to(here).as_posix(), path.read_bytes()) for path in sorted(here.rglob("*.py"))]
    return digest(files, common())


def watched(backend: object) -> object:
    """joblib's Dask backend, if it is that, as one that asks workers for their version, and hears of tasks given up.

    >>> with distributed.Client("scheduler:8786"), joblib.parallel_config("dask"):      # doctest: +SKIP
    ...     cb.simulate(policies, instances, stop, replications=100_000)
    """
    if type(backend).__module__ != "joblib._dask":
        return backend
    from joblib._dask import DaskDistributedBackend  # only here: Dask takes a second to load, and is optional

    class Backend(DaskDistributedBackend):
        # joblib packs calls until a task lasts as long.
        MIN_IDEAL_BATCH_DURATION, MAX_IDEAL_BATCH_DURATION = SHORTEST, 5 * SHORTEST

        def start_call(self):
            # One that cannot be reached is Dask's concern: it gets no task, or its tasks are played elsewhere.
            answers = self.client.run(library, on_error="return")
            others = sorted(worker for worker, answer in answers.items()
                            if answer != library() and not isinstance(answer, OSError))
            require(not others, "workers", others, "must have the same library, Python, numba, numpy and scipy as the "
                    "client: install requirements.lock and this very version on every machine")
            super().start_call()

        def submit(self, func, callback=None):
            job = super().submit(func, callback)
            job.add_done_callback(lambda done: done.exception() and callback(done.exception()))
            return job

    return Backend(client=backend.client, wait_for_workers_timeout=backend.wait_for_workers_timeout,
                   **backend.submit_kwargs)
