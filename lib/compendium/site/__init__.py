"""The reading site: chapters, results, ledger and library as pages that need neither a network nor a server.

`sources` lays out the pages as Markdown and notebooks, `extension` tells Sphinx what it has to know about them, and
`check` follows every link of what came out. The pages that are neither chapters nor generated stand in `book/`.
"""
