"""The page in a real browser, with the real server behind it."""

import csv
import io
import re
from base64 import b64encode
from collections import Counter
from pathlib import Path
from queue import Queue

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("playwright.sync_api")

from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from linkwise.active import ActiveClustering, LabelOracle
from linkwise.workbench import widget as widget_module
from linkwise.workbench.table import read_table
from tests.workbench.browsing import CHROMIUM, ROOMS, Bench, Visit
from tests.workbench.browsing import browser as new_browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

LOOK = Path(__file__).with_name("look.js").read_text(encoding="utf-8")
EVIL = "<img src=x onerror=alert(1)>"
TREES = ["ash<script>alert(2)</script>", "birch", "oak"]


def rows():
    """Three classes of two clouds each: without answers half of this is found, with thirty all of it."""
    X, cloud = make_blobs(120, n_features=4, centers=6, cluster_std=0.8, random_state=5)
    return X.round(3), cloud // 2


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A server about such rows; ids, notes and a class are full of HTML."""
    X, y = rows()
    path = tmp_path_factory.mktemp("page") / "trees.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        lines = csv.writer(stream)
        lines.writerow(["id", "a", "b", "c", "d", "note", "tree"])
        for k, row in enumerate(X):
            lines.writerow([f"{EVIL}{k}", *row, f"<b>bold</b> &amp; {k}", TREES[y[k]]])
    bench = Bench(path, "--id", "id", "--label", "tree", "--text-column", "note")
    yield bench
    bench.kill()


@pytest.fixture(scope="module")
def browser():
    with new_browser() as found:
        yield found


@pytest.fixture
def visit(bench, browser):
    visit = Visit(bench, browser)
    yield visit
    visit.close()


@pytest.mark.usefixtures("all_candidates")  # as the server, which is another process
def test_thirty_answers_by_keyboard(visit, bench, tmp_path):
    """As good as a session alone, in spite of a reload after ten and a server killed after twenty."""
    _, y = rows()
    oracle, keys = LabelOracle(y), {"same": "s", "different": "d"}
    visit.page.fill("#annotator", EVIL)
    visit.page.keyboard.press("Enter")
    for k in range(30):
        if k == 10:
            before = visit.pair()
            visit.page.reload()
            assert visit.pair() == before
        if k == 20:
            before = visit.answers()
            bench.kill()
            visit.page.keyboard.press("s")
            visit.page.wait_for_selector("#away:has-text('does not answer')")
            bench.start()
            visit.page.wait_for_selector("#away:has-text('Open the address')")
            visit.trouble.clear()
            visit.page.goto(bench.address)
            visit.pair()
            assert visit.answers() == before
        visit.press(keys[oracle(*visit.pair())])
    visit.settle()
    found = visit.page.evaluate(
        "fetch('/api/labels').then(r => r.arrayBuffer()).then(b => [...new Uint16Array(b)])"
    )
    told = visit.answers()
    assert len(told) == 30
    assert {source for *_, source in told} == {EVIL}

    table = read_table(bench.data, session=tmp_path, id_column="id", label_column="tree", text_column="note")
    alone = ActiveClustering(table.X, random_state=0)
    before = adjusted_rand_score(y, alone.labels_)
    for _ in range(30):
        pair = alone.ask()
        alone.tell(*pair, oracle(*pair))
    assert [one[:2] for one in told] == [tuple(pair) for pair in alone.answers.pairs.tolist()]
    assert adjusted_rand_score(y, found) == adjusted_rand_score(y, alone.labels_)
    assert before < 0.6
    assert adjusted_rand_score(y, found) > 0.8


def test_undo_asks_the_same_pair_again(visit):
    before, told = visit.pair(), visit.answers()
    visit.page.keyboard.press("5")
    visit.press("d")
    assert visit.answers() == [*told, (*before, "different", 1.0, None)]
    visit.press("Z")  # Caps Lock is on
    assert visit.pair() == before
    assert visit.answers() == told
    # The choice of how sure does not stick.
    assert visit.page.locator("input[name=level]:checked").get_attribute("value") == "2"


def test_a_held_key_answers_once_and_typing_does_not_answer(visit):
    told = visit.answers()
    visit.page.focus("#annotator")
    visit.page.keyboard.type("suds")
    assert visit.answers() == told
    visit.page.keyboard.press("Enter")
    before = visit.pair()
    visit.page.keyboard.down("u")
    for _ in range(5):
        visit.page.keyboard.down("u")
    visit.page.wait_for_function(
        "n => document.querySelector('.figures').innerText.includes(n)", arg=str(len(told) + 1)
    )
    visit.page.keyboard.up("u")
    visit.settle()
    assert visit.answers() == [*told, (*before, "unsure", None, "suds")]


def test_a_second_tab_sees_the_answers_of_the_first(visit):
    other = visit.tab()
    visit.pair(other)
    visit.press("u")
    n = visit.state()["n_answers"]
    other.bring_to_front()
    other.wait_for_function("n => document.querySelector('.figures').innerText.includes(n)", arg=str(n))
    other.wait_for_selector(f".room.answer[data-pair='{'-'.join(map(str, visit.pair()))}']")


def test_a_contradiction_is_resolved_by_a_click(visit):
    """Three rows are told to be the same and not the same, in the plane, and the chain is broken in Doubt."""
    page = visit.page
    visit.go("see")
    page.wait_for_selector(".stage[data-took]")

    def say(i, j, relation):
        for row, group in ((i, "A"), (j, "B")):
            page.fill("#go-to", str(row))
            page.keyboard.press("Enter")
            page.wait_for_selector(f".see aside h2:has-text('onerror=alert(1)>{row}')")
            page.click(f"text='Add to group {group}'")
        n = visit.state()["n_answers"]
        page.click(f".see button.{relation}")
        page.wait_for_selector("text=Group A: 0 rows")
        assert visit.state()["n_answers"] == n + 1

    # Rows of one class, so that nothing but the last answer is wrong.
    i, j, k = [row for row, label in enumerate(rows()[1]) if label == 0][-3:]
    say(i, j, "same")
    say(j, k, "same")
    say(i, k, "different")
    visit.go("doubt")
    page.wait_for_selector(".chain li")
    chain = page.locator(".chain").first
    assert chain.locator("li:has-text('are the same')").count() >= 2
    told = visit.answers()
    chain.locator("li:has-text('are different') button").click()
    page.wait_for_selector("text=None: your answers agree with each other.")
    assert visit.answers() == told[:-1]


def test_lasso(visit):
    """A line around all points takes all of them; the groups show what is told."""
    page = visit.page
    visit.go("see")
    page.wait_for_selector(".stage[data-took]")
    page.check("input[value=first]")
    box = page.locator(".overlay").bounding_box()
    left, top, right, bottom = (
        box["x"] + 3, box["y"] + 3, box["x"] + box["width"] - 3, box["y"] + box["height"] - 3,
    )  # fmt: skip
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top + 9)):
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    page.wait_for_selector("text=Group A: 120 rows")
    page.click("text=Clear")
    page.wait_for_selector("text=Group A: 0 rows")


def test_the_plane_by_keyboard(visit):
    page = visit.page
    visit.go("see")
    page.wait_for_selector(".stage[data-took]")
    # The first picture may be without rows; when they come, all are shown, and earlier moves are undone.
    # A function: an expression is text that is evaluated again and again, which the page forbids.
    page.wait_for_function("() => document.querySelector('.stage').dataset.view.split(' ')[2] > 20")
    page.focus(".overlay")
    view = lambda: list(map(float, page.locator(".stage").get_attribute("data-view").split()))  # noqa: E731
    before = view()
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "was => document.querySelector('.stage').dataset.view.split(' ')[0] > was", arg=before[0]
    )
    after = view()
    assert after[2] == pytest.approx(1.4 * before[2], rel=1e-3)
    page.keyboard.press("Enter")
    page.wait_for_selector(".see aside h3:has-text('Record')")
    page.select_option("#embedding", "spectral")
    page.wait_for_function(
        "was => document.querySelector('.stage').dataset.view !== was", arg=" ".join(map(str, after))
    )


SLOW_REPLIES = """
    const fetched = window.fetch;
    window.fetch = async (address, options) => {
        const reply = await fetched(address, options);
        if (options?.method === "PUT") await new Promise((go) => setTimeout(go, 500));
        return reply;
    };
"""


def test_beliefs_are_edited_and_new_classes_exported(visit, bench):
    """Replies to edits are slow: one that came after the run began made the page forget the run."""
    page = visit.page
    page.add_init_script(SLOW_REPLIES)
    page.reload()
    visit.go("classes")
    page.click("[data-cell='1 2']")
    page.click(".menu [data-belief=merge]")
    page.wait_for_selector("[data-cell='2 1'][aria-label*='merge']")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("k")
    page.wait_for_selector("[data-cell='1 1'][aria-label*='keep']")
    page.click("#run-classes")
    # Where kernels have to be compiled first, this takes a while.
    page.wait_for_selector("#accept-classes", timeout=240_000)
    assert "birch and oak are merged" in page.inner_text("#proposal")
    page.click("#accept-classes")
    page.wait_for_selector("text=Accepted; the new labels are in classes-1.csv")
    with page.expect_download() as waiting:
        page.click("#proposal a[download='classes.csv']")
    lines = list(csv.DictReader(io.StringIO(waiting.value.path().read_text(encoding="utf-8"))))
    assert len(lines) == 120
    new = {line["tree"]: line["new_class"] for line in lines}
    assert new["birch"] == new["oak"]
    assert len(set(new.values())) == 2


DRAWN = """
    window.drawn = new Set();
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        drawn.add(text);
        return write.call(this, text, ...place);
    };
"""


def test_exports(visit):
    """Files, report and plane call the same rows by the same number of a cluster."""
    visit.page.add_init_script(DRAWN)
    visit.settle()
    visit.page.reload()  # with the clusters as they are: until there are any, all rows are drawn as one
    visit.go("keep")
    texts = {}
    for name in ("links.csv", "labels.csv", "report.html"):
        with visit.page.expect_download() as waiting:
            visit.page.click(f".exports a[download='{name}']")
        texts[name] = waiting.value.path().read_text(encoding="utf-8").splitlines()
    sizes = Counter(line["cluster"] for line in csv.DictReader(texts["labels.csv"]))
    assert set(re.findall(r">cluster (\d+)<", "".join(texts["report.html"]))) == set(sizes)
    visit.go("see")
    # Until the page has heard of the clusters all rows are one; then everything is drawn anew.
    visit.page.wait_for_selector(f".legend li:nth-child({len(sizes)})")
    visit.page.evaluate("drawn.clear()")
    visit.page.set_viewport_size({"width": 1200, "height": 780})
    visit.page.wait_for_function("n => drawn.size >= n", arg=len(sizes))
    shown = visit.page.locator(".legend li").all_inner_texts()
    found = [re.match(r"cluster (\d+)\s+(\d+)", text).groups() for text in shown]
    assert {number: int(size) for number, size in found} == sizes
    assert visit.page.evaluate("[...drawn]") == list(dict.fromkeys(number for number, _ in found))
    visit.page.fill("#go-to", "0")
    visit.page.keyboard.press("Enter")
    first = next(csv.DictReader(texts["labels.csv"]))["cluster"]
    assert visit.page.inner_text(".see aside .chip") == f"cluster {first}"
    told = {frozenset(one[:2]) for one in visit.answers() if one[2] != "unsure"}
    assert len(texts["links.csv"]) == 1 + len(told)
    assert len(texts["labels.csv"]) == 121
    assert texts["labels.csv"][1].startswith(f"{EVIL}0,")


@pytest.mark.parametrize("width", [390, 1920])
def test_every_room_fits_and_has_no_html(visit, width):
    """No sideways scrolling, no element made from the names, readable text in both themes, named controls."""
    page = visit.page
    page.set_viewport_size({"width": width, "height": 844})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for room in ROOMS:
            visit.go(room)
            page.wait_for_function(
                "() => document.querySelector('.room:not([hidden])').innerText.length > 60"
            )
            page.wait_for_load_state("networkidle")
            found = page.evaluate(LOOK)
            assert found["width"] <= width, room
            assert found["evil"] == [], room
            assert found["pale"] == [], (room, scheme)
            assert found["nameless"] == [], room
    visit.go("answer")
    assert EVIL in page.inner_text(".pair thead")
    assert "<b>bold</b> &amp;" in page.inner_text(".pair .texts")


def test_the_page_in_a_notebook(browser):
    """The widget without a notebook around it: a key in the browser becomes an answer of the session."""
    pytest.importorskip("anywidget")
    X, _ = rows()
    session = ActiveClustering(X, random_state=0)
    widget = session.widget()
    replies = Queue()
    widget.send = lambda message, buffers: replies.put({**message, "body": b64encode(buffers[0]).decode()})

    def ask(message):
        widget._answer(widget, message, [])
        return replies.get(timeout=60)

    page = browser.new_page()
    page.set_default_timeout(30_000)
    trouble = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    script = Path(widget_module.__file__).with_name("static") / "widget.js"
    page.route("**/*", lambda route: route.fulfill(body="<h1>Notebook</h1>", content_type="text/html"))
    page.route("**/widget.js", lambda route: route.fulfill(path=script, content_type="text/javascript"))
    page.expose_function("ask", ask)
    page.goto("http://notebook.invalid/")
    page.evaluate(
        """async () => {
            const bytes = text => new DataView(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
            let heard;
            const model = {
                on: (_, listener) => { heard = listener; },
                send: message => ask(message).then(({ body, ...reply }) => heard(reply, [bytes(body)])),
            };
            const { default: widget } = await import("/widget.js");
            widget.render({ model, el: document.body });
        }"""
    )
    page.locator(".room.answer[data-pair*='-']:not(.busy)").wait_for()
    page.focus(".shell")
    page.keyboard.press("u")
    page.wait_for_selector(".answers li:has-text('Not sure')", state="attached")
    assert session.n_answers == 1
    page.click("[data-room=see]")
    page.wait_for_selector(".stage[data-took]")
    page.click("[data-room=keep]")
    assert "in the memory of the notebook" in page.inner_text(".keep .lead")
    # The styles of the widget do not reach the notebook.
    assert page.evaluate("getComputedStyle(document.querySelector('body > h1')).fontSize") == "32px"
    page.close()
    widget.desk.close()
    widget.close()
    assert not trouble
