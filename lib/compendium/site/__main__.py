"""The command behind `make site`: lay out the pages, let Sphinx build them, follow every link."""

import shutil
import sys
import time

from .. import check, settings
from . import sources


def main(arguments=None):
    """The command; its exit status: 0, 1 if Sphinx has a warning or a link is dead, 2 if an input is wrong."""
    def work(build):
        from sphinx.cmd.build import build_main
        began, site, doctrees = time.monotonic(), build / "site", build / "site-doctrees"
        folder = sources.lay_out(".", build)
        if build_main(["-b", "html", "-W", "--keep-going", "-q", "-j", "auto", "-c", "book", "-d", str(doctrees),
                       str(folder), str(site)]):
            shutil.rmtree(doctrees, ignore_errors=True)      # else the next build would not warn again
            return 1
        found = check.faults(site)
        return check.tell(found, f"{site / 'index.html'}: the reading site, built in {time.monotonic() - began:.0f} s")

    return settings.command("compendium.site", __doc__, work, arguments)


if __name__ == "__main__":
    sys.exit(main())
