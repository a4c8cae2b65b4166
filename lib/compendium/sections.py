"""References as links: sections of the same page, and claims."""

import re

HEADING = re.compile(r"^#{2,5} (\d+(?:\.\d+)*)\.? ", re.MULTILINE)
# What stays as it is: code, formulas, links, tags, headings. Then "section 3.8", "sections 3.8, 3.9 and 4.1".
SKIPPED = r"```.*?```|<table.*?</table>|`[^`\n]+`|\$\$.*?\$\$|\$[^$]+\$|!?\[[^\]]*\]\([^)]*\)|<[^>]+>|^#[^\n]*$"
# No section: the 1 of "section 4.4, 1,000 runs".
MANY = r"\d+(?:\.\d+)*(?:(?:, and |, | and | or | to |–)\d+(?:\.\d+)*(?!\d|,\d{3}))*"
REFERENCE = re.compile(rf"(?:{SKIPPED})|(?P<papers>['’]s |\b[Tt]heir )?\b(?P<word>[Ss]ections? )(?P<numbers>{MANY})"
                       r"(?P<of>[\d.]*\d| of (?:the|their|its|that) )?", re.DOTALL | re.MULTILINE)


def numbers(texts):
    """The numbers of the sections whose headings stand in these texts of Markdown."""
    return {number for text in texts for number in HEADING.findall(text)}


def named(text):
    """The sections that a text refers to; a paper's own ("section 2 of the paper", "the paper's section 2") are not."""
    return [number for found in REFERENCE.finditer(text) if _ours(found)
            for number in re.findall(r"\d+(?:\.\d+)*", found["numbers"])]


def linked(text, known):
    """A text whose references to the `known` sections are links, and whose numbered headings can be linked to.

    >>> linked("See section 3.1; section 3.1 of the paper.", {"3.1"})
    'See [section 3.1](#section-3.1); section 3.1 of the paper.'
    """
    def link(found):
        if not _ours(found):
            return found[0]
        if found["numbers"] in known:
            return f"[{found['word']}{found['numbers']}](#section-{found['numbers']})"
        return found["word"] + re.sub(
            r"\d+(?:\.\d+)*", lambda n: f"[{n[0]}](#section-{n[0]})" if n[0] in known else n[0], found["numbers"])

    text = REFERENCE.sub(link, text)
    return HEADING.sub(lambda found: f'<a id="section-{found[1]}"></a>\n\n{found[0]}', text)


def to_claims(text, pages):
    """A text in which each claim's id leads to its page: `pages` maps ids to the page's path with its place."""
    ids = "|".join(sorted(map(re.escape, pages), key=len, reverse=True))
    pattern = re.compile(rf"(?:{SKIPPED})|\b(?P<id>{ids})\b", re.DOTALL | re.MULTILINE)
    return pattern.sub(lambda found: f"[{found['id']}]({pages[found['id']]})" if found["id"] else found[0], text)


def _ours(found):
    return found["word"] and not found["papers"] and not found["of"]
