"""The reading site: chapters, results, ledger and library as pages that need neither a network nor a server.

    python -m compendium.site                  from the project's folder; `make site` calls it

`sources` lays out the pages as Markdown and notebooks, `extension` tells Sphinx what it has to know about them, and
`check` follows every link of what came out. The pages that are neither chapters nor generated stand in `book/`.
"""
