//! Parquet files as pandas, Spark and DuckDB write them, and as nobody should.

use std::sync::Arc;

use ::parquet::basic::{Compression, GzipLevel, ZstdLevel};
use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// Values of a column, by its physical type.
enum Values {
    Double(Vec<f64>),
    Float(Vec<f32>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Spark(Vec<Int96>),
    Text(Vec<&'static str>),
    Flag(Vec<bool>),
}

/// Values, and the levels of those that may be missing.
type Column = (Values, Option<Vec<i16>>);

/// A file with one row group for each of `groups`.
fn file(schema: &str, groups: &[Vec<Column>], packed: Compression) -> Bytes {
    let properties = WriterProperties::builder().set_compression(packed).build();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for group in groups {
        let mut rows = writer.next_row_group().unwrap();
        for (values, levels) in group {
            let mut column = rows.next_column().unwrap().unwrap();
            let levels = levels.as_deref();
            fn put<T: DataType>(
                column: &mut ::parquet::file::writer::SerializedColumnWriter<'_>,
                values: &[T::T],
                levels: Option<&[i16]>,
            ) {
                column.typed::<T>().write_batch(values, levels, None).unwrap();
            }
            match values {
                Values::Double(values) => put::<DoubleType>(&mut column, values, levels),
                Values::Float(values) => put::<FloatType>(&mut column, values, levels),
                Values::Int(values) => put::<Int32Type>(&mut column, values, levels),
                Values::Long(values) => put::<Int64Type>(&mut column, values, levels),
                Values::Spark(values) => put::<Int96Type>(&mut column, values, levels),
                Values::Flag(values) => put::<BoolType>(&mut column, values, levels),
                Values::Text(values) => {
                    let values: Vec<ByteArray> = values.iter().map(|text| ByteArray::from(*text)).collect();
                    put::<ByteArrayType>(&mut column, &values, levels);
                }
            }
            column.close().unwrap();
        }
        rows.close().unwrap();
    }
    writer.into_inner().unwrap().into()
}

fn plain(groups: usize) -> Bytes {
    let group = |_| {
        vec![
            (Values::Double(vec![2.5, 1.5]), None),
            (Values::Text(vec!["b", "a"]), None),
            (Values::Text(vec!["m", "m"]), None),
            (Values::Double(vec![7.0, 8.0]), None),
        ]
    };
    let groups: Vec<_> = (0..groups).map(group).collect();
    let schema = "message m { required double time_s; required binary node (STRING); required binary metric (STRING); required double value; }";
    file(schema, &groups, Compression::SNAPPY)
}

fn read(bytes: Bytes) -> Result<Recording, Bad> {
    let mut recording = Recording::default();
    recording.add_parquet(bytes)?;
    recording.sort();
    Ok(recording)
}

/// Time and value of the only row.
fn only(time: &str, times: Values, value: &str, values: Values) -> Result<(f64, f32), Bad> {
    let schema = format!(
        "message m {{ required {time}; required binary node (STRING); required binary metric; required {value}; }}"
    );
    let texts = || (Values::Text(vec!["a"]), None);
    let recording =
        read(file(&schema, &[vec![(times, None), texts(), texts(), (values, None)]], Compression::UNCOMPRESSED))?;
    let row = recording.rows()[0];
    Ok((row.time_s, row.value))
}

#[test]
fn rows_of_all_groups_are_read_whatever_the_compression() {
    let recording = read(plain(3)).unwrap();
    assert_eq!(
        (recording.rows().len(), &recording.nodes[..], &recording.metrics[..]),
        (6, &["b".to_owned(), "a".to_owned()][..], &["m".to_owned()][..])
    );
    assert_eq!((recording.rows()[0].time_s, recording.rows()[0].value), (1.5, 8.0));
    let packings = [
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4_RAW,
        Compression::UNCOMPRESSED,
    ];
    for packed in packings {
        let group = vec![
            (Values::Text(vec!["x"; 20_000]), None),
            (Values::Text(vec!["m"; 20_000]), None),
            (Values::Float(vec![1.5; 20_000]), None),
            (Values::Int((0..20_000).collect()), None),
        ];
        let schema = "message m { required binary node (STRING); required binary metric (STRING); required float value; required int32 time_s; }";
        assert_eq!(read(file(schema, &[group], packed)).unwrap().rows().len(), 20_000, "{packed:?}");
    }
}

#[test]
fn times_are_timestamps_of_any_unit_or_epoch_seconds() {
    let of = |time: &str, times| only(time, times, "double value", Values::Double(vec![1.0])).unwrap().0;
    assert!((of("double time_s", Values::Double(vec![1.7e9 + 0.25])) - 1.7e9 - 0.25).abs() < 1e-6);
    assert_eq!(of("int64 time_s", Values::Long(vec![1_700_000_000])), 1.7e9);
    assert_eq!(of("int64 time_s (TIMESTAMP(MILLIS,true))", Values::Long(vec![1_700_000_000_500])), 1.7e9 + 0.5);
    assert_eq!(of("int64 time_s (TIMESTAMP_MILLIS)", Values::Long(vec![1_700_000_000_500])), 1.7e9 + 0.5);
    assert!(
        (of("int64 time_s (TIMESTAMP(MICROS,true))", Values::Long(vec![1_700_000_000_500_000])) - 1.7e9 - 0.5).abs()
            < 1e-6
    );
    assert!(
        (of("int64 time_s (TIMESTAMP(NANOS,false))", Values::Long(vec![1_700_000_000_500_000_000])) - 1.7e9 - 0.5)
            .abs()
            < 1e-6
    );
    // 2023-11-14 is Julian day 2,460,263.
    let mut spark = Int96::new();
    let nanos: u64 = 80_000_500_000_000;
    spark.set_data(nanos as u32, (nanos >> 32) as u32, 2_460_263);
    assert!((of("int96 time_s", Values::Spark(vec![spark])) - 1_700_000_000.5).abs() < 1e-3);
}

#[test]
fn values_are_numbers_of_any_type_and_what_is_none_is_named() {
    let of = |value: &str, values| only("double time_s", Values::Double(vec![1.0]), value, values);
    assert_eq!(of("float value", Values::Float(vec![1.5])).unwrap().1, 1.5);
    assert_eq!(of("int32 value", Values::Int(vec![-3])).unwrap().1, -3.0);
    assert_eq!(of("int32 value (UINT_32)", Values::Int(vec![-1])).unwrap().1, 4_294_967_295.0);
    assert_eq!(of("int64 value (INTEGER(64,false))", Values::Long(vec![5])).unwrap().1, 5.0);
    for (column, values) in [
        ("binary value (STRING)", Values::Text(vec!["1"])),
        ("boolean value", Values::Flag(vec![true])),
        ("int64 value (DECIMAL(10,2))", Values::Long(vec![5])),
        ("int64 value (TIMESTAMP(MILLIS,true))", Values::Long(vec![5])),
    ] {
        let why = of(column, values).unwrap_err().to_string();
        assert!(why.contains("column value must be a number; it is"), "{why}");
    }
    let why = only("int64 time_s", Values::Long(vec![1_760_000_000_000]), "float value", Values::Float(vec![1.0]))
        .unwrap_err();
    assert!(why.to_string().contains("milliseconds"), "{why}");
}

#[test]
fn missing_values_are_counted_and_a_row_without_a_node_is_refused() {
    let schema = "message m { optional double time_s; optional binary node (STRING); optional binary metric (STRING); optional double value; }";
    let rows = |node: Vec<i16>| {
        let nodes = vec!["a"; node.iter().filter(|level| **level == 1).count()];
        let group = vec![
            (Values::Double(vec![1.0, 2.0, 3.0]), Some(vec![1, 1, 0, 1])),
            (Values::Text(nodes), Some(node)),
            (Values::Text(vec!["m"; 4]), Some(vec![1; 4])),
            (Values::Double(vec![f64::INFINITY, 5.0, 6.0]), Some(vec![1, 0, 1, 1])),
        ];
        read(file(schema, &[group], Compression::SNAPPY))
    };
    let recording = rows(vec![1; 4]).unwrap();
    assert_eq!((recording.not_numbers, recording.not_times, recording.rows().len()), (2, 1, 1));
    assert!(rows(vec![1, 0, 1, 1]).unwrap_err().to_string().contains("no node or no metric"));
}

#[test]
fn columns_that_are_missing_or_lists_are_named() {
    let none = file("message m { required double time; required double value; }", &[], Compression::SNAPPY);
    assert_eq!(read(none).unwrap_err().to_string(), "the columns are time_s,node,metric,value; found 'time,value'");
    let list =
        "message m { required double time_s; required binary node; required binary metric; repeated double value; }";
    let group = vec![
        (Values::Double(vec![1.0]), None),
        (Values::Text(vec!["a"]), None),
        (Values::Text(vec!["m"]), None),
        (Values::Double(vec![]), Some(vec![0])),
    ];
    let made = std::panic::catch_unwind(|| file(list, &[group], Compression::SNAPPY));
    let Ok(made) = made else { return };
    assert!(read(made).unwrap_err().to_string().contains("must be one value a row"));
}

#[test]
fn a_file_cut_anywhere_is_an_error_that_says_so() {
    let whole = plain(2);
    for length in 0..whole.len() {
        let why = read(whole.slice(..length)).unwrap_err();
        assert!(matches!(why, Bad::Io { .. }), "{length}: {why}");
    }
}

#[test]
fn a_page_that_claims_more_than_is_read_is_refused_before_it_is_unpacked() {
    // A column of 100 MB of zeros that packs into some kilobytes, in one page.
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(false)
        .set_data_page_size_limit(1 << 30)
        .set_data_page_row_count_limit(usize::MAX)
        .build();
    let schema =
        "message m { required double time_s; required binary node; required binary metric; required double value; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    const ROWS: usize = 10_000_000;
    let mut at = 0;
    while let Some(mut column) = rows.next_column().unwrap() {
        if at == 0 || at == 3 {
            column.typed::<DoubleType>().write_batch(&vec![0.0; ROWS], None, None).unwrap();
        } else {
            column.typed::<ByteArrayType>().write_batch(&vec![ByteArray::from("a"); ROWS], None, None).unwrap();
        }
        column.close().unwrap();
        at += 1;
    }
    rows.close().unwrap();
    let bomb = Bytes::from(writer.into_inner().unwrap());
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    let why = std::error::Error::source(&read(bomb).unwrap_err()).unwrap().to_string();
    assert!(why.contains("bytes is more than is read"), "{why}");
}

proptest! {
    #[test]
    fn a_damaged_file_is_an_error_or_rows_and_never_a_crash(
        flips in prop::collection::vec((0_usize..4_096, any::<u8>()), 1..6)
    ) {
        let mut bytes = plain(2).to_vec();
        for (at, to) in flips {
            let at = at % bytes.len();
            bytes[at] = to;
        }
        let _ = read(bytes.into());
    }

    #[test]
    fn no_bytes_are_too_strange(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        bytes.extend(b"PAR1");
        let _ = read(bytes.into());
    }
}
