//! Answers of Prometheus as exporters fill them, and as nobody should.

use proptest::prelude::*;

use super::*;

fn read(texts: &[&str]) -> Result<(Recording, Left), Bad> {
    let mut prometheus = Prometheus::default();
    for text in texts {
        prometheus.add(text.as_bytes())?;
    }
    let mut recording = Recording::default();
    let left = prometheus.into_recording(&mut recording)?;
    recording.sort();
    Ok((recording, left))
}

/// Seconds since the first sample and values of a metric on a node.
fn values(recording: &Recording, node: &str, metric: &str) -> Vec<(f64, f32)> {
    let of = |row: &&super::super::Row| {
        let (at, of) = recording.of(row);
        recording.nodes[at] == node && recording.metrics[of] == metric
    };
    recording.rows().iter().filter(of).map(|row| (row.time_s - 1.7e9, row.value)).collect()
}

/// One series: labels, and a sample every 15 s.
fn series(labels: &str, samples: &[f64]) -> String {
    let pair = |(at, value): (usize, &f64)| format!("[{},\"{value}\"]", 1_700_000_000 + 15 * at);
    let pairs: Vec<String> = samples.iter().enumerate().map(pair).collect();
    format!("{{\"metric\":{{{labels}}},\"values\":[{}]}}", pairs.join(","))
}

fn answer(series: &[String]) -> String {
    format!("{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{}]}}}}", series.join(","))
}

#[test]
fn gpus_of_a_node_are_averaged_and_its_memory_is_a_share() {
    let gpu = |name: &str, gpu: u32, samples: &[f64]| {
        let labels = format!(
            "\"__name__\":\"{name}\",\"Hostname\":\"n01\",\"instance\":\"10.0.0.1:9400\",\"gpu\":\"{gpu}\",\"device\":\"nvidia{gpu}\""
        );
        series(&labels, samples)
    };
    let text = answer(&[
        gpu("DCGM_FI_DEV_GPU_UTIL", 0, &[90.0, 100.0]),
        gpu("DCGM_FI_DEV_GPU_UTIL", 1, &[70.0, 100.0]),
        gpu("DCGM_FI_DEV_GPU_TEMP", 0, &[60.0, 61.0]),
        gpu("DCGM_FI_DEV_GPU_TEMP", 1, &[80.0, 60.0]),
        gpu("DCGM_FI_DEV_FB_USED", 0, &[60_000.0, 60_000.0]),
        gpu("DCGM_FI_DEV_FB_FREE", 0, &[20_000.0, 20_000.0]),
        gpu("DCGM_FI_PROF_NVLINK_TX_BYTES", 0, &[2e9, 2e9]),
        gpu("DCGM_FI_PROF_NVLINK_RX_BYTES", 1, &[3e9, 3e9]),
    ]);
    let (recording, left) = read(&[&text]).unwrap();
    assert_eq!(values(&recording, "n01", "gpu_util_pct"), [(0.0, 80.0), (15.0, 100.0)]);
    assert_eq!(values(&recording, "n01", "gpu_temp_c"), [(0.0, 70.0), (15.0, 60.5)]);
    let worst =
        (values(&recording, "n01", "gpu_util_least_pct")[0].1, values(&recording, "n01", "gpu_temp_most_c")[0].1);
    assert_eq!(worst, (70.0, 80.0));
    assert_eq!(values(&recording, "n01", "gpu_mem_used_pct")[0].1, 75.0);
    assert_eq!(values(&recording, "n01", "nvlink_gbs")[0].1, 5.0);
    assert_eq!(left, Left::default());
}

#[test]
fn cpu_time_of_all_cpus_becomes_percent_of_the_node() {
    let cpu = |cpu: u32, mode: &str, a_second: f64| {
        let labels = format!(
            "\"__name__\":\"node_cpu_seconds_total\",\"instance\":\"n02:9100\",\"cpu\":\"{cpu}\",\"mode\":\"{mode}\""
        );
        series(&labels, &[100.0, 100.0 + 15.0 * a_second, 100.0 + 30.0 * a_second])
    };
    let text = answer(&[
        cpu(0, "user", 0.5),
        cpu(0, "system", 0.25),
        cpu(0, "idle", 0.25),
        cpu(1, "user", 0.25),
        cpu(1, "iowait", 0.5),
        cpu(1, "steal", 0.0),
        cpu(1, "idle", 0.25),
    ]);
    let (recording, left) = read(&[&text]).unwrap();
    let of = |metric: &str| values(&recording, "n02", metric);
    assert_eq!(of("cpu_util_pct"), [(15.0, 50.0), (30.0, 50.0)]);
    assert_eq!(of("cpu_system_pct")[0].1, 25.0 / 1.0);
    assert_eq!(of("cpu_iowait_pct")[0].1, 50.0);
    assert_eq!(left, Left::default());
}

#[test]
fn counters_of_a_folder_go_on_across_its_files_and_a_reset_makes_no_spike() {
    let labels = "\"__name__\":\"node_network_transmit_bytes_total\",\"instance\":\"n1:9100\",\"device\":\"ib0\"";
    let first = answer(&[series(labels, &[0.0, 15e9, 30e9])]);
    // The next window overlaps, and the node is started again in it.
    let second = answer(&[series(labels, &[0.0, 15e9, 30e9, 45e9, 1e9, 16e9])]);
    let (recording, left) = read(&[&second, &first]).unwrap();
    assert_eq!(values(&recording, "n1", "net_tx_gbs"), [(15.0, 1.0), (30.0, 1.0), (45.0, 1.0), (75.0, 1.0)]);
    assert_eq!(left.resets, 1);
}

#[test]
fn an_address_gets_the_name_that_the_node_gives_itself() {
    let uname = series("\"__name__\":\"node_uname_info\",\"instance\":\"10.0.0.7:9100\",\"nodename\":\"n07\"", &[1.0]);
    let load = series("\"__name__\":\"node_memory_MemTotal_bytes\",\"instance\":\"10.0.0.7:9100\"", &[100.0]);
    let free = series("\"__name__\":\"node_memory_MemAvailable_bytes\",\"instance\":\"10.0.0.7:9100\"", &[40.0]);
    let (recording, _) = read(&[&answer(&[load, free]), &answer(&[uname])]).unwrap();
    assert_eq!(values(&recording, "n07", "mem_used_pct"), [(0.0, 60.0)]);
    assert_eq!(recording.nodes, ["n07"]);
}

#[test]
fn what_cannot_be_used_is_counted_and_listed() {
    let text = answer(&[
        series("\"__name__\":\"node_load1\",\"instance\":\"a:1\"", &[1.0]),
        series("\"__name__\":\"node_load1\",\"instance\":\"b:1\"", &[1.0]),
        series("\"instance\":\"a:1\"", &[1.0]),
        series("\"__name__\":\"DCGM_FI_DEV_GPU_UTIL\",\"gpu\":\"0\"", &[1.0]),
        series("\"__name__\":\"node_cpu_seconds_total\",\"instance\":\"a:1\",\"mode\":\"user\"", &[1.0]),
        series("\"__name__\":\"node_context_switches_total\",\"instance\":\"a:1\"", &[]),
        "{\"metric\":{\"__name__\":\"DCGM_FI_DEV_GPU_TEMP\",\"instance\":\"a:1\"},\"values\":[[1,\"NaN\"],[2,\"+Inf\"],[3,\"1e308\"],[-4,\"1\"],[5,\"x\"],[6,null]]}".to_owned(),
    ]);
    let (recording, left) = read(&[&text]).unwrap();
    let unknown = [("node_cpu_seconds_total".to_owned(), 1), ("node_load1".to_owned(), 2)].into();
    assert_eq!(left, Left { unknown, nameless: 1, nowhere: 1, no_values: 1, ..Left::default() });
    assert_eq!((recording.not_numbers, recording.not_times, recording.rows().len()), (5, 1, 0));
}

#[test]
fn an_answer_is_read_in_any_order_of_its_keys_and_without_its_envelope() {
    let one = series("\"__name__\":\"DCGM_FI_DEV_GPU_TEMP\",\"instance\":\"a:1\"", &[50.0]);
    for text in [
        format!(
            "{{\"data\":{{\"result\":[{one}],\"resultType\":\"matrix\"}},\"status\":\"success\",\"warnings\":[\"x\"]}}"
        ),
        format!("[{one}]"),
        format!("{}\n{}", answer(std::slice::from_ref(&one)), answer(&[])),
        answer(&[one.replace("\"50\"", "50")]),
    ] {
        assert!(is_answer(text.as_bytes()), "{text}");
        assert_eq!(values(&read(&[&text]).unwrap().0, "a", "gpu_temp_c"), [(0.0, 50.0)], "{text}");
    }
    assert!(!is_answer(b"{\"kind\":\"nic_drop\",\"nodes\":[\"n1\"],\"faulty\":[]}"));
}

#[test]
fn what_is_no_answer_says_why() {
    let deep = format!("{{\"data\":{}", "{\"data\":".repeat(100_000));
    let deep_unread = format!("{{\"x\":{}", "[".repeat(1_000_000));
    let long = format!("{{\"status\":\"{}", "x".repeat(1 << 20));
    for (text, said) in [
        (
            "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse \\u001b[31merror\"}",
            "Prometheus said: parse",
        ),
        ("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}", "query_range is needed"),
        ("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{}", "EOF"),
        ("{\"data\":{\"result\":[7]}}", "a series with its metric and values"),
        ("7", "an answer of Prometheus' query_range"),
        ("", "EOF"),
        (&deep, "recursion limit"),
        (&deep_unread, ""),
        (&long, "more than 65536 bytes"),
    ] {
        let why = read(&[text]).unwrap_err().to_string();
        assert!(why.contains(said) && !why.contains('\u{1b}'), "{why}");
    }
}

#[test]
fn a_million_series_and_names_are_bounded_and_counted() {
    let mut list: Vec<String> =
        (0..2_000).map(|n| series(&format!("\"__name__\":\"x{n}\",\"instance\":\"a:1\""), &[1.0])).collect();
    list.extend((0..300).map(|n| {
        series(&format!("\"__name__\":\"DCGM_FI_DEV_GPU_TEMP\",\"instance\":\"n{n}\\u0000\\u001b[2J:1\""), &[1.0])
    }));
    let (recording, left) = read(&[&answer(&list)]).unwrap();
    assert_eq!((left.unknown.len(), left.unlisted), (UNKNOWN, 2_000 - UNKNOWN as u64));
    assert_eq!(recording.nodes.len(), 300);
    assert!(recording.nodes.iter().all(|node| !node.contains(['\u{0}', '\u{1b}'])));
}

proptest! {
    #[test]
    fn no_answer_is_too_strange(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"data\"", "\"result\"", "\"metric\"", "\"values\"", "\"__name__\"", "\"instance\"",
                "\"node_cpu_seconds_total\"", "\"DCGM_FI_DEV_GPU_UTIL\"", "\"1e308\"", "1", "-1e9", "\"NaN\"", "null", "\u{0}", "\"",
            ]),
            0..40,
        )
    ) {
        let _ = read(&[&words.concat()]);
    }

    #[test]
    fn any_counter_gives_rates_that_are_no_loss_and_in_order_of_time(
        samples in prop::collection::vec((0_i64..100_000_000, -1e12_f64..1e12), 0..60)
    ) {
        let pairs: Vec<String> = samples.iter().map(|(ms, value)| format!("[{},\"{value}\"]", *ms as f64 / 1e3)).collect();
        let one = format!(
            "{{\"metric\":{{\"__name__\":\"node_context_switches_total\",\"instance\":\"a\"}},\"values\":[{}]}}",
            pairs.join(",")
        );
        let (recording, _) = read(&[&answer(&[one])]).unwrap();
        prop_assert!(recording.rows().iter().all(|row| row.value >= 0.0 && row.value.is_finite()));
        prop_assert!(recording.rows().windows(2).all(|pair| pair[0].time_s < pair[1].time_s));
    }
}
