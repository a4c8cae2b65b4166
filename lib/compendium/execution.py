"""One notebook in a kernel of its own, watched from the terminal.

The notebook runs in a thread, so that the main thread is free for the progress line, and a signal can interrupt it only
where it waits. The kernel is another process: it ends with the run, and within a second or two if the run is killed.
"""

import contextlib
import os
import signal
import threading

import papermill
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from papermill.exceptions import PapermillExecutionError, strip_color

from costbandits.studies.progress import VARIABLE

from .project import COMMITTED
from .terminal import Watcher
from .times import ELSE, Meter

PULSE = 0.2       # seconds between two looks at the progress
PATIENCE = 5.0    # seconds for what is left to do when the kernel has been killed
TRACEBACK = 20    # lines of a failed cell's traceback to show
# Seconds that a cell's outputs may come after its end; on a busy machine a few are not enough. Later is an error: the
# notebook would be saved without them.
LATE = {"iopub_timeout": 120, "raise_on_iopub_timeout": True}
WIDGETS = "application/vnd.jupyter.widget-state+json"


class NotebookFailed(Exception):
    """A cell raised, or the kernel died; the message is for the reader."""


class Kernel(AsyncKernelManager):
    """A kernel in this very Python, whatever kernels the user has registered under the notebook's name."""

    def __init__(self, cwd, log, environment):
        super().__init__(kernel_name="python3", transport_encryption="auto",
                         connection_file=str(log.with_name("kernel.json")))
        self._cwd, self._log_path, self._environment, self._cancelled = cwd, log, environment, False

    @property
    def kernel_spec(self):
        return KernelSpec(**get_kernel_dict())

    async def start_kernel(self, **options):
        if self._cancelled:
            raise DeadKernelError("interrupted")
        environment = {**os.environ, **self._environment, **options.pop("env", {})}
        with open(self._log_path, "wb") as log:
            await self._async_start_kernel(cwd=self._cwd, stdout=log, stderr=log, env=environment, **options)
        if self._cancelled:      # while it was being started
            self.kill()

    def kill(self):
        """End the kernel and its workers at once, or keep it from starting."""
        self._cancelled = True
        if self.provisioner is not None and self.provisioner.pgid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.provisioner.pgid, signal.SIGKILL)


class Execution:
    """Execute a notebook: `work(kernel, **hooks)`, which calls these hooks of nbclient, returns it executed.

    The kernel works in `cwd`; its log and progress messages are left in `scratch`. A notebook that shows an error has
    failed, also where its cells have gone on.
    """

    def __init__(self, work, scratch, cwd):
        # The first look for fonts may take long. In a cell, matplotlib's message about that would be an output.
        import matplotlib.font_manager  # noqa: F401
        self._work, self._log, self.watcher = work, scratch / "kernel.log", Watcher(scratch / "progress.jsonl")
        self.cell, self._result, self._error, self._ended = 0, None, None, threading.Event()
        self._reply, self._meter = {}, None     # the kernel's reply to the last cell; its meter, once it runs
        # The debugger's warning about frozen modules would be the only line of most logs.
        self._kernel = Kernel(cwd, self._log, {VARIABLE: str(self.watcher.path), "PYDEVD_DISABLE_FILE_VALIDATION": "1"})

    def _run(self):
        try:
            self._result = self._work(self._kernel, on_cell_start=self._at_cell, on_cell_executed=self._after_cell)
            for where, output in shown(self._result):      # papermill takes an exit in the middle for the end
                if output["output_type"] == "error":
                    raise NotebookFailed(f"{where} shows an error:\n{_tail(output['traceback'])}")
        except BaseException as error:
            self._error = error
        finally:
            with contextlib.suppress(Exception):
                run_sync(self._kernel.shutdown_kernel)(now=self._error is not None)
            self._ended.set()

    def _at_cell(self, cell, cell_index):
        self.cell = cell_index + 1

    def _after_cell(self, cell, cell_index, execute_reply):
        """End the run at a cell with an error, though it has succeeded: an object may raise when it is displayed."""
        self._reply = execute_reply["content"]
        for output in cell.outputs:
            if output.output_type == "error":
                raise CellExecutionError.from_cell_and_msg(cell, output)

    def watched(self, line, cells):
        """Run to the end, and say on the line how far it is; the executed notebook.

        KeyboardInterrupt passes on when the kernel has been shut down.
        """
        # Not for the thread itself: a thread whose `join` is interrupted counts as ended on Python 3.11.
        threading.Thread(target=self._run, daemon=True).start()
        try:
            while not self._ended.wait(PULSE):
                study = self.watcher.line()
                pid = getattr(getattr(self._kernel, "provisioner", None), "pid", None)
                self._meter = self._meter or (Meter(pid) if pid else None)
                if self._meter:
                    self._meter.look(self.watcher.running() or ELSE)
                cell = f"cell {self.cell} of {cells}" if self.cell else "the kernel starts"
                line.show(" · ".join(filter(None, (cell, study))), topic=self.watcher.label)
        finally:
            line.clear()
            if self._error is not None or not self._ended.is_set():
                self._kernel.kill()
                self._ended.wait(PATIENCE)
        if self._error is not None:
            raise self._explained()
        return self._result

    def spent(self):
        """Seconds of CPU so far, by study."""
        return dict(self._meter.spent) if self._meter else {}

    def _explained(self):
        error = self._error
        if isinstance(error, PapermillExecutionError):
            told = error.traceback or [f"{self._reply.get('ename')}: {self._reply.get('evalue')}"]     # of a magic
            return NotebookFailed(f"cell {self.cell} failed, In [{error.exec_count}]:\n{_tail(told)}")
        if isinstance(error, CellExecutionError):
            return NotebookFailed(f"cell {self.cell} failed:\n{_tail([error.traceback])}")
        if isinstance(error, DeadKernelError) or "ernel died" in str(error):
            where = f"in cell {self.cell}" if self.cell else "before the first cell"
            log = self._log.read_text(encoding="utf-8", errors="replace")
            return NotebookFailed(f"the kernel died {where}; out of memory?\n{_tail([log])}".strip())
        return error


def shown(notebook):
    """The outputs of an executed notebook, each behind the words that name its cell; and those that widgets hold."""
    yield from ((f"cell {number}", output) for number, cell in enumerate(notebook.cells, 1)
                for output in cell.get("outputs", []))
    widgets = notebook.metadata.get("widgets", {}).get(WIDGETS, {}).get("state", {})
    yield from (("a widget", output) for widget in widgets.values() for output in widget["state"].get("outputs", []))


def _tail(traceback):
    lines = strip_color("\n".join(traceback)).rstrip().splitlines()
    return "\n".join(["    ..."] * (len(lines) > TRACEBACK) + lines[-TRACEBACK:])


def with_papermill(source, target, parameters):
    """Work for an `Execution`: the notebook at `source` with these parameters; `target` gets it even if it fails."""
    paths = [str(path).replace("{", "{{").replace("}", "}}") for path in (source, target)]     # papermill formats them
    return lambda kernel, **hooks: papermill.execute_notebook(
        *paths, parameters, kernel_name="python3", language="python", progress_bar=False,
        request_save_on_cell_execute=False, km=kernel, coalesce_streams=True, **hooks, **LATE)


def as_it_is(notebook):
    """Work for an `Execution`: the notebook object with the defaults of its parameters, without times of execution."""
    return lambda kernel, **hooks: NotebookClient(notebook, km=kernel, kernel_name="python3", record_timing=False,
                                                  coalesce_streams=True, **hooks, **LATE).execute(env={COMMITTED: ""})


