"""The command behind `make site`: lay out the pages, let Sphinx build them, follow every link."""

import shutil
import sys
import time
from pathlib import Path

from .. import check, settings
from ..terminal import text_of
from . import sources


def main(arguments=None):
    """The command; its exit status: 0, 1 if Sphinx has a warning or a link is dead, 2 if an input is wrong."""
    build, began = Path(settings.begin("compendium.site", __doc__).parse_args(arguments).build), time.monotonic()
    from sphinx.cmd.build import build_main
    try:
        folder = sources.lay_out(".", build)
    except (ValueError, OSError) as error:      # what fails later is no fault of the input
        print(f"costbandits: {text_of(error)}", file=sys.stderr)
        return 2
    site, doctrees = build / "site", build / "site-doctrees"
    if build_main(["-b", "html", "-W", "--keep-going", "-q", "-j", "auto", "-c", "book", "-d", str(doctrees),
                   str(folder), str(site)]):
        shutil.rmtree(doctrees, ignore_errors=True)      # else the next build would not warn again
        return 1
    found = check.faults(site)
    return check.tell(found, f"{site / 'index.html'}: the reading site, built in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
