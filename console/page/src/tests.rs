use std::fmt::Write as _;

use muster_wire::{Direction, Unit};

use super::*;

/// What a hostile node may call itself.
const HOSTILE: &str =
    "<script>alert(1)</script>\"'&\u{202e}\u{1b}[31m\u{0}\u{7}]]>\u{61c}--><img src=x onerror=alert(1)>";

fn curves(name: &str) -> Curves {
    Curves {
        title: name.to_owned(),
        said: name.to_owned(),
        caption: name.to_owned(),
        unit: Unit::BytesPerSec,
        band: Some([
            (1..=64).map(|at| 40e9 + f64::from(at) * 1e7).collect(),
            (1..=64).map(|at| 41e9 + f64::from(at) * 1e7).collect(),
        ]),
        usual: (1..=32).map(|at| (40.5e9 + f64::from(at) * 1e7, f64::from(at) / 32.0)).collect(),
        usual_is: name.to_owned(),
        convicted: vec![Curve {
            name: name.to_owned(),
            state: State::Fail,
            said: name.to_owned(),
            points: (1..=32).map(|at| (20e9 + f64::from(at) * 1e7, f64::from(at) / 32.0)).collect(),
        }],
    }
}

fn line(name: &str) -> Line {
    Line { state: Some(State::Fail), text: name.to_owned(), next: name.to_owned() }
}

/// A table with every kind of cell, in the first column and in another.
fn table(name: &str) -> Table {
    let mut table = Table::new(name, &["node", "#value"]);
    table.columns[0].title = name.to_owned();
    for cell in [
        Cell::Text(name.to_owned()),
        Cell::Number(name.to_owned()),
        Cell::Code(name.to_owned()),
        Cell::Names(Names::of([name])),
        Cell::State(State::Pass),
        Cell::State(State::Warn),
        Cell::Nothing,
    ] {
        table.rows.push(vec![cell.clone(), cell]);
    }
    table.left_out = name.to_owned();
    table
}

fn heat(name: &str) -> Heat {
    let names: Vec<String> = (0..5).map(|_| name.to_owned()).collect();
    let heat = Heat::of(&names, &[2], |a, b| (a != b).then_some(0.4));
    Heat { title: name.to_owned(), said: name.to_owned(), caption: name.to_owned(), ..heat }
}

fn course(name: &str) -> Course {
    let moment = |at: i32| Moment { at: f64::from(at), own: Some(300.0), peers: Some([490.0, 500.0, 510.0]) };
    Course {
        title: name.to_owned(),
        said: name.to_owned(),
        caption: name.to_owned(),
        name: name.to_owned(),
        moments: (0..20).map(moment).collect(),
        unit: "W",
        from: 4.0,
        until: 19.0,
    }
}

fn values(name: &str) -> Values {
    let of = |at: usize| ValuesOf { name: name.to_owned(), place: at + 1, value: 1e9 + at as f64, state: State::Pass };
    Values {
        title: name.to_owned(),
        said: name.to_owned(),
        caption: name.to_owned(),
        unit: Unit::BytesPerSec,
        of: (0..9).map(of).collect(),
        count: 12,
    }
}

fn events(name: &str) -> Events {
    let mark = |row: usize| Mark { row, at: row as f64 * 7.0, cause: row == 1 };
    Events {
        title: name.to_owned(),
        said: name.to_owned(),
        caption: name.to_owned(),
        rows: vec![name.to_owned(); 3],
        marks: (0..3).map(mark).collect(),
        last_step: Some(-2.0),
    }
}

/// A page with every kind of part, each text of which is `name`.
fn whole(name: &str) -> Page {
    let inner = vec![
        Part::Text(name.to_owned()),
        Part::Code(name.to_owned()),
        Part::Names(Names::of([name, name])),
        Part::List(vec![line(name), Line::of(name)]),
        Part::Table(table(name)),
        Part::Curves(curves(name)),
        Part::Values(values(name)),
        Part::Heat(heat(name)),
        Part::Course(course(name)),
        Part::Events(events(name)),
    ];
    let entry = Entry {
        id: "e1".to_owned(),
        state: State::Fail,
        title: name.to_owned(),
        names: Names::of([name]),
        lines: vec![line(name)],
        parts: inner.clone(),
    };
    let fold = Fold { title: name.to_owned(), open: false, parts: inner };
    let mut page = Page {
        kind: "Run",
        title: name.to_owned(),
        state: Some(State::Fail),
        counts: vec![Count { state: State::Fail, count: 1 }],
        undecided: "1 of those in part undecided".to_owned(),
        facts: vec![Fact { label: "run", value: name.to_owned() }],
        notes: vec![name.to_owned()],
        sections: vec![
            Section { id: "verdicts", title: name.to_owned(), parts: vec![Part::Entry(entry)] },
            Section { id: "more", title: name.to_owned(), parts: vec![Part::Fold(fold)] },
        ],
        program: "muster".to_owned(),
    };
    page.settle(&mut str::to_owned, &|names| names.join(","));
    page
}

/// The page read as XML, which is stricter than any browser.
fn read(html: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    roxmltree::Document::parse_with_options(html, options).unwrap_or_else(|why| panic!("{why}\n{html}"))
}

#[test]
fn text_of_a_node_never_becomes_markup_and_turns_no_text_around() {
    let html = whole(HOSTILE).html().unwrap();
    let page = read(&html);
    for banned in ["script", "img", "iframe", "object", "embed", "form", "base", "foreignObject"] {
        assert_eq!(page.descendants().filter(|node| node.has_tag_name(banned)).count(), 0, "{banned}");
    }
    let handler = |node: roxmltree::Node<'_, '_>| node.attributes().any(|own| own.name().starts_with("on"));
    assert!(!page.descendants().any(handler));
    assert!(!html.chars().any(|c| c.is_control() && c != '\n'), "control characters");
    assert!(!html.contains(['\u{202e}', '\u{61c}', '\u{200f}', '\u{2066}']), "characters that reorder");
    let shown = "<script>alert(1)</script>\"'&]]>--><img src=x onerror=alert(1)>";
    let heading = page.descendants().find(|node| node.has_tag_name("h1")).unwrap();
    assert_eq!(heading.text(), Some(shown));
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let html = whole("n1").html().unwrap();
    let page = read(&html);
    for attribute in page.descendants().flat_map(|node| node.attributes()) {
        let points = matches!(attribute.name(), "href" | "src" | "srcset" | "action" | "data");
        let inside = attribute.value().starts_with('#') || attribute.value().starts_with("data:");
        assert!(!points || inside, "{}={}", attribute.name(), attribute.value());
    }
    for word in ["url(", "@import", "http-equiv=\"refresh\""] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn a_name_is_replaced_wherever_it_stands() {
    let mut page = whole("n17.secret.example");
    page.settle(&mut |text| text.replace("n17.secret.example", "node-001"), &|names| names.join(","));
    let html = page.html().unwrap();
    assert!(html.contains("node-001") && !html.contains("secret"), "{html}");
}

#[test]
fn those_who_see_nothing_hear_what_each_chart_shows_and_find_their_way() {
    let html = whole("n1").html().unwrap();
    let page = read(&html);
    let all = |tag: &str| page.descendants().filter(|node| node.tag_name().name() == tag).collect::<Vec<_>>();
    for tag in ["header", "nav", "main", "footer", "h1"] {
        assert_eq!(all(tag).len(), 1, "{tag}");
    }
    for svg in all("svg") {
        let said =
            svg.attribute("role") == Some("img") && svg.attribute("aria-label").is_some_and(|said| said.len() > 3);
        assert!(said || svg.attribute("aria-hidden") == Some("true"));
    }
    for table in all("table") {
        assert!(table.children().any(|child| child.has_tag_name("caption")));
        assert!(table.descendants().filter(|node| node.has_tag_name("th")).all(|th| th.attribute("scope").is_some()));
    }
    let ids: Vec<&str> = page.descendants().filter_map(|node| node.attribute("id")).collect();
    let mut once = ids.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), ids.len(), "{ids:?}");
    for link in all("a").iter().filter_map(|a| a.attribute("href")) {
        assert!(ids.contains(&link.trim_start_matches('#')), "{link}");
    }
    for named in page.descendants().filter_map(|node| node.attribute("aria-labelledby")) {
        assert!(ids.contains(&named), "{named}");
    }
}

#[test]
fn every_colour_of_a_chart_has_its_counterpart_in_the_dark() {
    let html = whole("n1").html().unwrap();
    let page = read(&html);
    let mut colours = 0;
    for node in page.descendants().filter(|node| node.ancestors().any(|above| above.tag_name().name() == "svg")) {
        for own in node.attributes().filter(|own| matches!(own.name(), "fill" | "stroke") && own.value() != "none") {
            let mut selector = String::new();
            write!(selector, "[{}=\"{}\"]", own.name(), own.value()).unwrap();
            assert!(html.contains(&selector), "{selector} is not in the style sheet");
            colours += 1;
        }
    }
    assert!(colours > 50);
}

#[test]
fn a_chart_shows_the_band_the_criterion_and_the_numbered_sample() {
    let svg = curves("n1").svg();
    for part in ["<polygon", "stroke=\"#1F62A8\"", "stroke=\"#C1281F\"", "<circle", ">1</text>", "100 %", "GB/s"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let empty = Curves { band: None, usual: Vec::new(), convicted: Vec::new(), ..curves("n1") };
    assert!(empty.svg().contains("<line"), "an empty chart has its axes");
}

#[test]
fn a_map_of_thousands_stays_small_and_shows_the_worst_pair_of_a_block() {
    let names: Vec<String> = (0..3_000).map(|n| format!("n{n:04}")).collect();
    let heat = Heat::of(&names, &[], |src, dst| {
        (src != dst).then_some(if (src, dst) == (2_017, 11) { 0.1 } else { 0.95 + ((src * 7 + dst) % 5) as f32 * 0.01 })
    });
    assert_eq!((heat.block, heat.names.len()), (32, 94));
    assert_eq!(heat.shares[63 * 94], Some(0.1));
    assert!(heat.svg().len() < 60_000, "{}", heat.svg().len());
    let noisy = Heat::of(&names, &[], |src, dst| Some(((src * 31 + dst * 17) % 13) as f32 / 10.0));
    assert!(noisy.svg().len() < 900_000, "{}", noisy.svg().len());
}

#[test]
fn the_colour_of_the_worst_pairs_is_said_to_be_far_above_the_usual_where_less_is_better() {
    let names = ["n1".to_owned(), "n2".to_owned()];
    let heat = Heat::of(&names, &[], |src, dst| (src != dst).then_some([0.02, 1.0][src]));
    let words = |direction| {
        let heat = Heat { direction, ..heat.clone() };
        heat.legend().into_iter().map(|(colour, words)| format!("{colour} {words}")).collect::<Vec<_>>()
    };
    let [usual, missing] = ["#E3ECF4 usual", "#C3C4C9 not measured"];
    assert_eq!(words(Direction::HigherIsBetter), ["#6E061B below 25 %", usual, missing]);
    assert_eq!(words(Direction::LowerIsBetter), ["#6E061B above 4x, or failed", usual, missing]);
}

#[test]
fn events_have_a_row_a_node_with_what_can_be_the_cause_as_a_cross() {
    let svg = events("n1").svg();
    assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
    assert_eq!(svg.matches(">n1</text>").count(), 3, "{svg}");
    for part in ["stroke=\"#C1281F\"", " s</text>"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let hours = Events { last_step: Some(-40_000.0), ..events("n1") };
    assert!(hours.svg().contains(" h</text>"));
    let one =
        Events { rows: vec!["n1".to_owned()], marks: vec![Mark { row: 0, at: 0.0, cause: true }], ..events("n1") };
    assert!(Events { last_step: None, ..one }.svg().contains("stroke=\"#C1281F\""), "one event alone is drawn");
}
