"""References to sections and claims become links; what is code, a formula, a link or the paper's own stays."""

import pytest

from compendium import sections

KNOWN = {"3", "3.1", "3.10"}


@pytest.mark.parametrize(("text", "expected"), [
    ("as section 3.1 shows.", "as [section 3.1](#section-3.1) shows."),
    ("Section 3.10", "[Section 3.10](#section-3.10)"),
    ("(section 3).", "([section 3](#section-3))."),
    ("sections 3, 3.1 and 3.10", "sections [3](#section-3), [3.1](#section-3.1) and [3.10](#section-3.10)"),
    ("sections 3.1–3.10", "sections [3.1](#section-3.1)–[3.10](#section-3.10)"),
    ("section 3.1, 3,000 runs", "[section 3.1](#section-3.1), 3,000 runs"),
    ("section 3.1 or 30,000 runs", "[section 3.1](#section-3.1) or 30,000 runs"),
    ("sections 3.1 and 4", "sections [3.1](#section-3.1) and 4"),
    ("see\nsection 3.1", "see\n[section 3.1](#section-3.1)"),
    ("> section 3.1", "> [section 3.1](#section-3.1)")])
def test_a_reference_is_a_link(text, expected):
    assert sections.linked(text, KNOWN) == expected


@pytest.mark.parametrize("text", [
    "section 4", "section 3.1.2", "section 3.1 of the paper", "section 3 of their report", "the paper's section 3.1",
    "their section 3.1",
    "`section 3.1`", "```\nsection 3.1\n```", "$x$ and $\\text{section 3.1}$", "[section 3.1](other.md)",
    "![section 3.1](picture.png)", "# About section 3.1", "intersection 3"])
def test_what_is_no_reference_stays(text):
    assert sections.linked(text, KNOWN) == text


def test_headings_with_numbers_can_be_linked_to():
    assert sections.linked("## 3. Theory\ntext\n### 3.10 A *b*", KNOWN) == (
        '<a id="section-3"></a>\n\n## 3. Theory\ntext\n<a id="section-3.10"></a>\n\n### 3.10 A *b*')
    assert sections.numbers(["# 1 Title\n## 2. Two", "### 2.1 Three\n## In brief"]) == {"2", "2.1"}


def test_the_sections_that_a_text_names():
    assert sections.named("Section 1, sections 2.1 and 2.2; section 7 of the paper; `section 8`") == ["1", "2.1", "2.2"]


def test_a_claim_leads_to_its_row():
    pages = {"K1": "k.md#K1", "K1b": "k.md#K1b"}
    assert sections.to_claims("K1b, (K1). `K1` $K1$ [K1](x) K12 xK1", pages) == (
        "[K1b](k.md#K1b), ([K1](k.md#K1)). `K1` $K1$ [K1](x) K12 xK1")
