"""The page in a real Chromium: both roles, with and without scripts, by keyboard, narrow.

Pictures of what was seen are written to the folder that PCOR_PICTURES names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, Route, expect

import pcor
from tests.helpers.page_forms import ID, MESSY, METRIC, RECORD, write_messy
from tests.helpers.page_world import NARROW, Site, Visit, browser, site, visit
from tests.helpers.service_world import (
    ABSENT,
    ANALYST,
    DATASET,
    ORDINARY,
    OTHER,
    OUTLIER,
    SCHEMA,
    SOURCE,
)

SERIOUS = ("serious", "critical")
# Dark differs by its colours alone.
RULES: dict[str, tuple[str, ...]] = {"light": (), "dark": ("color-contrast",)}


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("page")) as made:
        yield made


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def visitor(chrome: Browser, where: Site) -> Iterator[Visit]:
    with visit(chrome, where) as made:
        yield made
        assert made.hosts() <= {where.url.removeprefix("http://")}
        assert made.said == []


def accessible(page: Page, *rules: str) -> list[str]:
    """Return the serious violations that axe finds: of all rules, or of some."""
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{one['id']}: {node['html'][:200]}"
        for one in found
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]


def fits(page: Page) -> bool:
    """Whether nothing is wider than the screen."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


# -- on paper -------------------------------------------------------------------------------------

# Of each value: how dark its ink is on white paper (0 is black), and how it is marked. A browser
# prints no backgrounds unless it is told to, so they do not count.
ON_PAPER = """all => all.map(one => {
    const style = getComputedStyle(one)
    const [red, green, blue] = style.color.match(/[0-9.]+/g).map(Number)
    const ink = 255 - (255 - (red + green + blue) / 3) * style.opacity
    const bold = Number(style.fontWeight) >= 600
    const ticked = getComputedStyle(one, '::before').content.includes('\u2713')
    return [ink, bold, ticked, style.textDecorationLine.includes('line-through')]
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_printed_certificate_marks_the_chosen_values_in_black(
    chrome: Browser, scheme: Literal["light", "dark"]
) -> None:
    table = pcor.Table(pcor.demo.ten_people(), pcor.demo.ten_people_schema())
    start = pcor.Context(table.schema, {"job_title": ["CEO", "Lawyer"], "city": ["Ottawa"]})
    release = pcor.Release(8, start, pcor.plan(table.schema, "0.2"), private=True)
    page = chrome.new_page()
    page.set_content(release.to_html())
    page.emulate_media(media="print", color_scheme=scheme)
    chosen = page.locator(".in").evaluate_all(ON_PAPER)
    others = page.locator(".out").evaluate_all(ON_PAPER)
    assert (len(chosen), len(others)) == (len(start), table.schema.width - len(start))
    assert all(one == [0, True, True, False] for one in chosen)
    assert all(80 < ink < 140 and marks == [False, False, True] for ink, *marks in others)
    page.close()


# -- the analyst ----------------------------------------------------------------------------------


def test_an_analyst_asks_reads_and_takes_the_answer_along(visitor: Visit) -> None:
    visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.page
    visitor.go("/")
    visitor.picture("01-sign-in")
    visitor.sign_in()
    expect(page.get_by_role("heading", name=DATASET)).to_be_visible()
    visitor.picture("02-datasets")
    page.get_by_role("link", name="Ask about a record").click()
    page.wait_for_url("**/ask?*")  # and for its scripts
    visitor.picture("03-question")
    # With a script the plan follows the question; no button is needed.
    page.get_by_label("Which record?").select_option(str(OUTLIER))
    plan = page.locator("#plan")
    expect(plan).to_contain_text("epsilon 0.1 of the 4 you have left")
    expect(plan).to_contain_text("about 40 releases like this one")
    expect(plan).to_contain_text("weaker than differential privacy")
    page.get_by_label("Large").check()
    expect(plan).to_contain_text("epsilon 0.2")
    visitor.picture("04-plan")
    page.get_by_role("button", name="Confirm and spend epsilon 0.2").click()
    sentence = page.locator("h1.sentence")
    expect(sentence).to_contain_text(f"Record {OUTLIER} is an outlier by pay")
    expect(page.get_by_role("status")).to_contain_text("The answer is here")
    expect(page).to_have_title(re.compile("Answer"))
    visitor.picture("05-answer")
    page.emulate_media(color_scheme="dark")
    visitor.picture("05-answer-dark")
    page.emulate_media(color_scheme="light")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download as JSON").click()
    certificate = json.loads(Path(downloading.value.path()).read_text())
    assert sentence.inner_text() == certificate["sentence"]
    # It says so for two seconds, which a busy machine may miss.
    page.evaluate("window.setTimeout = () => 0")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"WHERE {certificate['where']}"
    marked = page.locator(".values .in").all_text_contents()
    assert marked == [
        f"in: {value}" for one in SCHEMA.attributes for value in certificate["context"][one.name]
    ]
    page.get_by_role("link", name="History").first.click()
    visitor.picture("06-history")
    expect(page.get_by_role("row").nth(1)).to_contain_text("answered")


def test_the_same_works_without_javascript(chrome: Browser, where: Site) -> None:
    with visit(chrome, where, java_script_enabled=False) as one:
        one.sign_in(OTHER)
        one.ask(OUTLIER)
        # The page looks again by itself.
        expect(one.page.locator("h1.sentence")).to_contain_text(f"Record {OUTLIER} is an outlier")
        one.picture("07-answer-without-javascript")
        with one.page.expect_download() as downloading:
            one.page.get_by_role("link", name="Download as a page").click()
        assert "PCOR certificate" in Path(downloading.value.path()).read_text()
        one.page.get_by_role("link", name="History").first.click()
        one.page.get_by_role("link", name=str(OUTLIER)).first.click()
        expect(one.page.locator("h1.sentence")).to_be_visible()
        one.page.get_by_role("button", name="Sign out").click()
        expect(one.page.get_by_label("Your key")).to_be_visible()
        assert one.hosts() <= {where.url.removeprefix("http://")}


def test_the_same_question_again_is_free_and_says_so(visitor: Visit, where: Site) -> None:
    visitor.sign_in(OTHER)
    visitor.ask(OUTLIER, "Small")
    expect(visitor.page.locator("h1.sentence")).to_be_visible()
    answer, left = visitor.page.url, where.service.ledger.left(DATASET, OTHER)
    visitor.go(f"/ask?dataset={DATASET}&record={OUTLIER}&preset=small")
    expect(visitor.page.locator("#plan")).to_contain_text("You have asked this before")
    visitor.page.get_by_role("link", name="See the answer").click()
    expect(visitor.page).to_have_url(answer)
    assert where.service.ledger.left(DATASET, OTHER) == left


def test_a_plan_that_is_about_to_be_another_cannot_be_confirmed(visitor: Visit) -> None:
    visitor.sign_in(OTHER)
    visitor.go(f"/ask?dataset={DATASET}&record={ORDINARY}&preset=large")
    confirm = visitor.page.get_by_role("button", name="Confirm and spend")
    expect(confirm).to_be_enabled()
    held: list[Route] = []
    visitor.page.route("**/ask?*", lambda route: held.append(route))
    visitor.page.get_by_label("Medium", exact=False).check()
    expect(confirm).to_be_disabled()
    visitor.until(lambda: held)
    held.pop().continue_()
    expect(confirm).to_have_text("Confirm and spend epsilon 0.1")
    expect(confirm).to_be_enabled()


def test_an_answer_that_there_is_no_group_is_told_in_words(visitor: Visit) -> None:
    visitor.sign_in()
    visitor.ask(ORDINARY)
    expect(visitor.page.get_by_role("heading", name="No group found")).to_be_visible()
    visitor.picture("08-no-group")


def test_everything_can_be_done_by_keyboard(visitor: Visit) -> None:
    page = visitor.page
    visitor.go("/sign-in")

    def tab_to(name: str) -> None:
        """Press Tab until something of this name has the focus."""
        for _ in range(40):
            page.keyboard.press("Tab")
            held = page.evaluate(
                "(e => (e.labels?.[0] ?? e).textContent.trim())(document.activeElement)"
            )
            if held.startswith(name):
                outline = "getComputedStyle(document.activeElement).outlineStyle"
                ring = "e => getComputedStyle(e.closest('label') ?? e).outlineStyle"
                shown = page.evaluate(outline), page.evaluate(f"({ring})(document.activeElement)")
                assert set(shown) != {"none"}, f"no focus ring on {name}"
                return
        raise AssertionError(f"{name} cannot be reached by Tab")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab_to("Your key")
    page.keyboard.type(visitor.site.keys[ANALYST])
    page.keyboard.press("Enter")
    page.wait_for_url(visitor.site.url + "/")
    tab_to("Ask about a record")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ask?*")
    tab_to("Which record?")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("Which record?")).to_have_value(str(OUTLIER))
    tab_to("Medium")
    page.keyboard.press("ArrowLeft")  # to small
    expect(page.locator("#plan")).to_contain_text("epsilon 0.05")
    tab_to("Confirm and spend")
    page.keyboard.press("Enter")
    page.wait_for_url("**/releases/*")
    expect(page.locator("h1.sentence")).to_be_visible()
    tab_to("In full, and who is not protected")
    page.keyboard.press("Enter")
    expect(page.get_by_text("the queried record itself")).to_be_visible()
    tab_to("Download as JSON")
    with page.expect_download():
        page.keyboard.press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_analysts_pages_are_accessible_and_fit_a_narrow_screen(
    chrome: Browser, where: Site, scheme: str
) -> None:
    options = {"color_scheme": scheme, "viewport": NARROW, "has_touch": True}
    with visit(chrome, where, **options) as one:
        one.go("/sign-in")
        found = {"/sign-in": accessible(one.page)}
        one.sign_in()
        draw = 7 if scheme == "light" else 8
        one.go(f"/ask?dataset={DATASET}&record={OUTLIER}&preset=small&draw={draw}")
        one.page.get_by_role("button", name="Confirm and spend").click()
        expect(one.page.locator("h1.sentence")).to_be_visible()
        answer = one.page.url.removeprefix(where.url)
        question = f"/ask?dataset={DATASET}&record={OUTLIER}&preset=large"
        for place in ("/", question, answer, "/releases", "/releases/AAAA"):
            one.go(place)
            assert fits(one.page), place
            found[place] = accessible(one.page, *RULES[scheme])
            one.picture(f"narrow-{scheme}-{len(found)}")
        assert {place: said for place, said in found.items() if said} == {}


# -- the owner and the auditor --------------------------------------------------------------------


def test_an_owner_makes_a_key_opens_a_dataset_closes_it_and_takes_the_key_back(
    visitor: Visit,
) -> None:
    page = visitor.page
    visitor.sign_in("owner")
    page.get_by_role("link", name="Keys").click()
    page.get_by_label("Whose").fill("cleo")
    page.get_by_role("button", name="Make the key").click()
    token = page.locator("#new-key").inner_text()
    visitor.picture("10-new-key")
    visitor.go(f"/dataset?name={DATASET}")
    page.get_by_text("Give an analyst a part of it").click()
    page.get_by_label("Analyst", exact=True).fill("cleo")
    page.get_by_label("Epsilon they may spend").fill("0.3")
    page.get_by_role("button", name="Set the allotment").click()
    expect(page.get_by_role("heading", name="cleo")).to_be_visible()
    visitor.picture("11-dataset")
    visitor.site.keys["cleo"] = token
    with visit(page.context.browser, visitor.site) as other:  # type: ignore[arg-type]
        other.sign_in("cleo")
        expect(other.page.get_by_text("0.3 left of 0.3")).to_be_visible()
        page.get_by_role("link", name="Close the dataset to cleo").click()
        expect(page.get_by_role("heading", name=f"Close {DATASET} to cleo?")).to_be_visible()
        assert accessible(page) == []
        visitor.picture("11-close")
        page.get_by_role("button", name="Close the dataset").click()
        expect(page.get_by_text("Closed; 0 was spent.")).to_be_visible()
        assert accessible(page) == []
        other.go("/")
        expect(other.page.get_by_text("No dataset is open to you yet")).to_be_visible()
        visitor.go("/keys")
        page.get_by_role("link", name="Take back the key of cleo").click()
        expect(page.get_by_role("heading", name="Take back the key of cleo?")).to_be_visible()
        assert accessible(page) == []
        visitor.picture("11-take-back")
        page.get_by_role("button", name="Take the key back").click()
        expect(page.get_by_text("taken back")).to_be_visible()
        other.go("/")
        expect(other.page.get_by_label("Your key")).to_be_visible()
        expect(other.page.get_by_role("alert")).to_contain_text("was taken back")


def test_an_unknown_address_is_a_page_that_leads_back(visitor: Visit) -> None:
    visitor.go("/nothing-here")
    expect(visitor.page.get_by_role("heading", name="Not found")).to_be_visible()
    assert accessible(visitor.page) == []
    visitor.until(lambda: visitor.said)  # the browser notes the 404
    visitor.said.clear()
    visitor.page.get_by_role("link", name="Back to the start").click()
    expect(visitor.page.get_by_label("Your key")).to_be_visible()


def test_an_owner_who_takes_a_name_again_is_asked_first(visitor: Visit) -> None:
    page = visitor.page
    visitor.sign_in("owner")
    visitor.go("/register")
    page.get_by_label("Name").fill(DATASET)
    page.get_by_label("Description").fill("The same people once more")
    page.get_by_label("File").fill("people.parquet")
    page.get_by_label("Schema").fill(SCHEMA.to_toml())
    page.get_by_label("Records open for questions").fill(f"{OUTLIER}\n{ORDINARY}")
    page.get_by_label("Detector").fill("grubbs:min_population=5")
    page.get_by_role("button", name="Register the dataset").click()
    expect(page.get_by_role("alert")).to_contain_text("is registered already")
    assert accessible(page) == []
    visitor.until(lambda: visitor.said)  # the browser notes the 409
    visitor.said.clear()
    visitor.picture("12-register-again")
    page.get_by_role("button", name="Register version 2").click()
    expect(page.get_by_role("heading", name=f"{DATASET} version 2")).to_be_visible()


def test_an_owner_registers_a_dataset_and_is_told_what_is_wrong(visitor: Visit) -> None:
    page = visitor.page
    visitor.sign_in("owner")
    visitor.go(f"/register?name={DATASET}")
    page.get_by_label("Schema", exact=True).fill("nonsense")
    page.get_by_role("button", name="Register version").click()
    expect(page.get_by_role("alert")).to_contain_text("the schema is not TOML")
    expect(page.get_by_label("Schema")).to_have_value("nonsense")
    visitor.until(lambda: visitor.said)  # the browser notes the 422
    visitor.said.clear()
    visitor.go("/register")
    page.get_by_label("Name").fill("again & again")
    page.get_by_label("File").fill("people.parquet")
    page.get_by_label("Schema").fill(SCHEMA.to_toml())
    page.get_by_label("Records open for questions").fill(f"{OUTLIER}\n{ORDINARY}")
    page.get_by_label("Detector").fill("grubbs:min_population=5")
    page.locator("#budget").fill("3")
    visitor.picture("12-register")
    page.get_by_role("button", name="Register the dataset").click()
    expect(page.get_by_role("heading", name="again & again")).to_be_visible()
    expect(page.get_by_text("3 left of 3")).to_be_visible()


def test_an_owner_goes_from_a_messy_file_to_a_dataset_and_a_release(
    visitor: Visit, where: Site
) -> None:
    write_messy(where.service.settings.data)
    page = visitor.page
    visitor.sign_in("owner")
    page.get_by_role("link", name="Register a dataset").click()
    page.get_by_role("link", name=MESSY).click()
    page.get_by_label("Metric").select_option(METRIC)
    page.get_by_label("Id").select_option(ID)
    visitor.picture("15-choose")
    page.get_by_role("button", name="Draft the schema").click()
    expect(page.get_by_text("parts wait for your review")).to_be_visible()
    assert accessible(page) == []
    visitor.picture("16-draft")
    job = page.get_by_role("region", name="job")
    expect(job).to_contain_text("Spellings that differ by case alone")
    expect(job.get_by_label("Edges")).to_be_hidden()  # of another way to declare a domain
    values = job.get_by_label("Values", exact=True)
    words = values.input_value()
    values.fill(words.split("\n")[0])
    page.get_by_role("button", name="Check the file").click()
    expect(page.get_by_text("One thing in the file does not fit")).to_be_visible()
    expect(job).to_contain_text("outside the declared domain")
    assert accessible(page) == []
    visitor.picture("17-check")
    values.fill(f"{words}\ngardener")  # who could be in the table, and is not
    page.get_by_role("button", name="Go on to register").click()
    expect(page.get_by_role("alert").first).to_contain_text("it is said where it stands")
    visitor.until(lambda: visitor.said)  # the browser notes the 422
    visitor.said.clear()
    visitor.picture("18-to-review")
    page.set_viewport_size(NARROW)
    assert fits(page)
    visitor.picture("18-to-review-narrow")
    for tick in page.get_by_label("Reviewed:").all():
        tick.check()
    page.get_by_role("button", name="Go on to register").click()
    expect(page.get_by_text("The file fits this schema.")).to_be_visible()
    assert fits(page)
    page.get_by_label("Name").fill("wages")
    page.get_by_label("Records open for questions").fill(str(RECORD))
    page.locator("#budget").fill("3")
    visitor.picture("19-register-narrow")
    page.get_by_role("button", name="Register the dataset").click()
    expect(page.get_by_role("heading", name="wages")).to_be_visible()
    visitor.go(f"/ask?dataset=wages&record={RECORD}&preset=large")
    page.get_by_role("button", name="Confirm and spend").click()
    expect(page.locator("h1.sentence")).to_contain_text(f"{RECORD} is an outlier by pay")


def test_an_owner_audits_the_exposure_of_a_record(visitor: Visit) -> None:
    visitor.sign_in("owner")
    visitor.go(f"/exposure?dataset={DATASET}&record={OUTLIER}")
    assert visitor.page.locator("main").inner_text().startswith("OWNER ONLY")
    visitor.page.get_by_role("button", name="Audit this record").click()
    result = visitor.page.locator(".result")
    expect(result).to_contain_text("people looked at")
    expect(result).to_contain_text("For record 17, a release under OCDP")
    expect(visitor.page.locator(".working")).to_be_hidden()
    assert accessible(visitor.page) == []
    visitor.picture("13-exposure")
    visitor.go("/log")
    expect(visitor.page.get_by_text("exposure audit").first).to_be_visible()


def test_an_audit_of_nobody_is_told_in_words(visitor: Visit) -> None:
    visitor.sign_in("owner")
    visitor.go(f"/exposure?dataset={DATASET}&record={ABSENT}")
    visitor.page.get_by_role("button", name="Audit this record").click()
    expect(visitor.page.locator(".result")).to_contain_text("No record with row number")


def test_an_auditor_verifies_the_books_and_sees_nothing_to_press(visitor: Visit) -> None:
    page = visitor.page
    visitor.sign_in("auditor")
    expect(page.get_by_role("heading", name="Ledger")).to_be_visible()
    page.get_by_role("link", name="Verify").click()
    expect(page.locator("#verification")).to_contain_text("The ledger is whole")
    assert page.locator("form").count() == 1  # signing out
    visitor.picture("14-ledger")
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Export").click()
    lines = Path(downloading.value.path()).read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == list(range(1, len(lines) + 1))
    page.get_by_role("link", name="Audit log").click()
    page.wait_for_url("**/log")
    page.get_by_role("link", name="Verify").click()
    expect(page.locator("#verification")).to_contain_text("The audit log is whole")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_owners_pages_are_accessible_and_fit_a_narrow_screen(
    chrome: Browser, where: Site, scheme: str
) -> None:
    with visit(chrome, where, color_scheme=scheme, viewport=NARROW) as one:
        one.sign_in("owner")
        found = {}
        for place in (
            "/",
            f"/dataset?name={DATASET}",
            "/register",
            "/draft",
            f"/draft?source={SOURCE}",
            "/keys",
            "/releases",
            "/ledger?verify=true",
            "/log",
            f"/exposure?dataset={DATASET}",
        ):
            one.go(place)
            one.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert fits(one.page), place
            found[place] = accessible(one.page, *RULES[scheme])
            one.picture(f"narrow-{scheme}-owner-{place.split('?')[0].strip('/') or 'datasets'}")
        assert {place: said for place, said in found.items() if said} == {}


def test_axe_does_see_a_serious_violation(visitor: Visit) -> None:
    visitor.go("/sign-in")
    visitor.page.evaluate("document.querySelector('label').remove()")
    visitor.page.evaluate(
        "document.querySelector('input[name=key]').removeAttribute('placeholder')"
    )
    assert accessible(visitor.page) != []
