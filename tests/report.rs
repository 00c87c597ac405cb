//! Reports for a browser: written by the real program, opened by a real browser on a phone, a laptop and on paper.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use muster_skip::{Lacks, skip};
use muster_tests::binary;

/// What a hostile node calls itself.
const HOSTILE: &str = "<script>document.title='taken'</script>";

fn muster(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.env("MUSTER_DB", dir.join("db")).env("HOME", dir).env("MUSTER_INVENTORY", dir.join("none.toml"));
    command.args(arguments).output().unwrap()
}

fn said(dir: &Path, arguments: &[&str]) -> String {
    let output = muster(dir, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn import(dir: &Path, rows: &str) {
    let file = dir.join("samples.csv");
    std::fs::write(&file, rows).unwrap();
    said(dir, &["import", "--higher-is-better", "*", file.to_str().unwrap()]);
}

/// Eight nodes of a rack, the third at 70 % and with a name that is meant to run.
fn imported() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = "node,metric,value,step\n".to_owned();
    for node in 1..=8 {
        let name = if node == 3 { HOSTILE.to_owned() } else { format!("rack7-{node:02}") };
        for step in 0..40 {
            let level = if node == 3 { 70.0 } else { 100.0 };
            rows += &format!("{name},net/bandwidth@own,{},{step}\n", level + 0.01 * f64::from(step % 7));
        }
    }
    import(dir.path(), &rows);
    dir
}

/// A job of eight nodes for twelve minutes, of which n5 loses a third of its power after half of it.
fn recording(dir: &Path) -> PathBuf {
    let mut rows = "time_s,node,metric,value\n".to_owned();
    for second in 0..720_u32 {
        for node in 0..8_u32 {
            let noise = 1.0 + 0.02 * f64::from((second * 7 + node * 13) % 11) / 11.0;
            let share = if node == 5 && second >= 360 { 0.66 } else { 1.0 };
            let at = 1_760_000_000 + second;
            rows += &format!(
                "{at},n{node},gpu_power_w,{:.1}\n{at},n{node},tensor_active,{:.4}\n",
                500.0 * share * noise,
                0.6 * noise
            );
        }
    }
    let file = dir.join("job.csv");
    std::fs::write(&file, rows).unwrap();
    file
}

/// A job of two nodes, of which one lost a GPU.
fn bundle(dir: &Path) -> PathBuf {
    let folder = dir.join("job-4711");
    std::fs::create_dir_all(folder.join("dmesg")).unwrap();
    let job = r#"{"job": "4711", "nodes": [{"node": "rack7-01", "ranks": [0]}, {"node": "rack7-02", "ranks": [1]}]}"#;
    std::fs::write(folder.join("job.json"), job).unwrap();
    let line = "[2026-11-21T14:30:08Z] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, GPU has fallen off the bus. <b>\n";
    let after = "[2026-11-21T14:30:09Z] NVRM: Xid (PCI:0000:3b:00): 45, pid=4242, name=python3, Ch 00000008\n";
    std::fs::write(folder.join("dmesg/rack7-02.log"), [line, after].concat()).unwrap();
    std::fs::write(folder.join("dmesg/rack7-01.log"), after.replace(":09Z", ":12Z")).unwrap();
    folder
}

fn chromium() -> Option<PathBuf> {
    let places = std::env::var_os("PATH")?;
    let mut all =
        std::env::split_paths(&places).flat_map(|dir| ["chromium", "chromium-browser"].map(|name| dir.join(name)));
    all.find(|file| file.is_file())
}

/// Opens a page without a screen, without a network, as nobody before.
fn open(chromium: &Path, page: &Path, more: &[&str]) -> Output {
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new("timeout");
    command.arg("120").arg(chromium).args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        "--allow-file-access-from-files",
        "--enable-logging=stderr",
    ]);
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.args(more).arg(format!("file://{}", page.display()));
    command.output().unwrap()
}

/// A page that holds the report at a width and says what the browser made of it.
const MEASURE: &str = r#"<!DOCTYPE html><body><iframe id="f" src="REPORT" width="WIDTH" height="800"></iframe><pre id="said">nothing</pre>
<script>
document.getElementById('f').onload = function () {
  const page = this.contentDocument, box = (e) => e.getBoundingClientRect();
  const charts = [...page.querySelectorAll('figure svg[role=img]')];
  const marks = charts.flatMap((c) => [...c.querySelectorAll('circle,rect,polyline,polygon')]);
  const contrast = getComputedStyle(page.body).color !== getComputedStyle(page.body).backgroundColor;
  document.getElementById('said').textContent = JSON.stringify({
    title: page.title,
    wide: page.documentElement.scrollWidth,
    charts: charts.filter((c) => box(c).width > 250 && box(c).height > 50).length,
    all: charts.length,
    marks: marks.filter((m) => box(m).width + box(m).height > 0).length,
    headings: [...page.querySelectorAll('h2')].map((h) => h.textContent),
    text: page.body.innerText.length,
    scripts: page.scripts.length,
    contrast,
  });
};
</script></body>"#;

fn measured(chromium: &Path, report: &Path, width: u32) -> (serde_json::Value, String) {
    let page = report.with_extension(format!("{width}.html"));
    let text = MEASURE.replace("REPORT", &format!("file://{}", report.display())).replace("WIDTH", &width.to_string());
    std::fs::write(&page, text).unwrap();
    let output = open(chromium, &page, &["--dump-dom", "--virtual-time-budget=8000"]);
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = dom.split("<pre id=\"said\">").nth(1).and_then(|rest| rest.split("</pre>").next()).unwrap_or_default();
    let said = said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let problems = String::from_utf8_lossy(&output.stderr).into_owned();
    (serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {dom}\n{problems}")), problems)
}

#[test]
fn every_kind_of_report_opens_in_a_browser_with_text_and_figures_and_without_an_error() {
    const TEST: &str = "every_kind_of_report_opens_in_a_browser_with_text_and_figures_and_without_an_error";
    let Some(chromium) = chromium() else { return skip(TEST, Lacks::Tool, "no chromium on the PATH") };
    let dir = imported();
    let recording = recording(dir.path());
    let recording = recording.to_str().unwrap();
    let bundle = bundle(dir.path());
    for (name, arguments, charts, heading) in [
        ("run", &[][..], 1, "Verdicts"),
        ("node", &["--node", HOSTILE], 1, "All metrics"),
        ("metric", &["--metric", "net/bandwidth"], 2, "Distributions"),
        ("recording", &["--recording", recording], 1, "Alerts"),
        ("case", &["--case", bundle.to_str().unwrap()], 1, "Suspects"),
    ] {
        let file = dir.path().join(format!("{name}.html"));
        let all = [&["export", "--format", "html", "-o", file.to_str().unwrap()], arguments].concat();
        said(dir.path(), &all);
        for width in [390, 1280] {
            let (seen, problems) = measured(&chromium, &file, width);
            assert!(!problems.contains("CONSOLE"), "{name} at {width}: {problems}");
            assert!(
                seen["wide"].as_u64().unwrap() <= u64::from(width),
                "{name} at {width} is wider than its screen: {seen}"
            );
            assert_eq!((&seen["charts"], &seen["all"]), (&charts.into(), &charts.into()), "{name} at {width}: {seen}");
            assert!(
                (charts == 0 || seen["marks"].as_u64().unwrap() > 3) && seen["text"].as_u64().unwrap() > 400,
                "{name}: {seen}"
            );
            assert!(seen["headings"].as_array().unwrap().iter().any(|known| known == heading), "{name}: {seen}");
            assert_eq!((&seen["scripts"], &seen["contrast"]), (&0.into(), &true.into()), "{name}: {seen}");
            assert_ne!(seen["title"], "taken", "{name}: a node's name ran");
        }
        let paper = dir.path().join(format!("{name}.pdf"));
        let printed =
            open(&chromium, &file, &[&format!("--print-to-pdf={}", paper.display()), "--no-pdf-header-footer"]);
        let bytes = std::fs::read(&paper).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&printed.stderr)));
        assert!(bytes.starts_with(b"%PDF") && bytes.len() > 10_000, "{name} on paper");
    }
}

#[test]
fn a_report_is_whole_in_itself_and_says_names_as_the_other_exports_do() {
    let dir = imported();
    let html = said(dir.path(), &["export", "--format", "html"]);
    for part in
        ["30 % below 7 peers", "net/bandwidth", "rack7-[01-02,04-08]", "Content-Security-Policy", "&#60;script&#62;"]
    {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("<script") && !html.contains("src=") && !html.contains("href=\"http"), "{html}");
    let hidden = said(dir.path(), &["export", "--format", "html", "--redact", "names,addresses,serials"]);
    assert!(!hidden.contains("rack7") && !hidden.contains("taken"), "{hidden}");
    assert!(hidden.contains("node-[002-008]"), "{hidden}");
    let markdown = said(dir.path(), &["export", "--format", "markdown", "--redact", "names"]);
    assert!(markdown.contains("| node-001 | FAIL |") && hidden.contains("</span> node-001</h3>"), "{markdown}");
    assert_eq!(html, said(dir.path(), &["export", "--format", "html"]), "the same run is the same file");
}

#[test]
fn what_is_not_there_is_a_slip_and_what_is_most_like_it_is_named() {
    let dir = imported();
    for (arguments, why) in [
        (&["--node", "rack7-1"][..], "has no node 'rack7-1'; did you mean rack7-01?"),
        (&["--metric", "net/bandwith"], "has no metric 'net/bandwith'; did you mean net/bandwidth?"),
    ] {
        let output = muster(dir.path(), &[&["export", "--format", "html"], arguments].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(64), 0), "{told}");
        assert!(told.contains(why), "{told}");
    }
    let output = muster(dir.path(), &["export", "--format", "csv", "--node", "rack7-01"]);
    assert_eq!(output.status.code(), Some(64));
    let output = muster(dir.path(), &["export", "--format", "html", "--case", "/nothing/here"]);
    assert_eq!(output.status.code(), Some(74), "{}", String::from_utf8_lossy(&output.stderr));
}
