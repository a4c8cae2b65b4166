"""How Sphinx builds the reading site. `make site` calls it; see lib/compendium/site."""

project = "costbandits"
author = "The costbandits authors"
copyright = "The costbandits authors, MIT licence"
html_title = "Bandits whose pulls cost something"
language = "en"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.bibtex",
              "compendium.site.extension"]
exclude_patterns = ["downloads", "_static"]
templates_path = ["_templates"]
nb_execution_mode = "off"
nb_merge_streams = True
nb_code_prompt_show = "code"
nb_code_prompt_hide = "code"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
bibtex_bibfiles = ["references.bib"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False
# The name of a field, such as `spent`, is looked up among attributes of all classes; two may share it.
suppress_warnings = ["ref.python"]

html_theme = "sphinx_book_theme"
html_math_renderer = "mathml"
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_js_files = ["site.js"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False      # a page opened as a file may not fetch others
html_theme_options = {"use_download_button": False, "use_fullscreen_button": False, "show_toc_level": 2,
                      "home_page_in_toc": True, "show_navbar_depth": 1, "back_to_top_button": False}
