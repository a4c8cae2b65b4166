"""Every link of a built site is followed, without a network: pages, places on them, pictures, scripts, files."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = ("img", "script", "source", "iframe", "link")


class Page(HTMLParser):
    """Places that a page has, what it links to, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.places, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = {key: value for key, value in attributes if value}
        self.places |= {found[key] for key in ("id", "name") if key in found}
        url = found.get("href" if tag in ("a", "link") else "src")
        if url and tag == "a":
            self.links.append(url)
        elif url and tag in LOADING and found.get("rel") not in ("canonical", "author"):
            self.loads.append(url)


def faults(site):
    """What is wrong with the links of a site, one text each: a dead one, or something loaded from a network."""
    site, found = Path(site).resolve(), []
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))
             if not path.is_relative_to(site / "_static")}      # where the theme leaves templates
    for path, page in pages.items():
        here = path.relative_to(site).as_posix()
        found += [f"{here}: loads {url} from a network" for url in page.loads if urlsplit(url).netloc]
        found += [f"{here}: {url} leads nowhere" for url in dict.fromkeys(page.links + page.loads)
                  if not _alive(url, path, pages, site)]
    return found


def _alive(url, path, pages, site):
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return True
    goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if goal.is_dir():
        goal /= "index.html"
    if goal not in pages:
        return goal.is_file() and goal.is_relative_to(site)
    return not parts.fragment or unquote(parts.fragment) in pages[goal].places


def tell(faults, good):
    """Say what is wrong, or that all is good; the exit status."""
    for fault in faults:
        print(f"costbandits: {fault}", file=sys.stderr)
    if not faults:
        print(good)
    return int(bool(faults))
