//! Writes tables as Parquet files, for column readers: pandas, Polars, DuckDB.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::tables::{Column, ResultTable};

/// Rows per row group, which a reader has to hold in memory at once.
const GROUP: usize = 1 << 20;

/// Writes a table with the same columns as the CSV file: texts as UTF-8, whole numbers as 64 bits, others as doubles.
pub fn write(path: &Path, table: &ResultTable) -> Result<()> {
    let columns = table.columns.iter().map(|(name, column)| described(name, column)).collect::<Result<Vec<_>>>()?;
    let schema = Arc::new(Type::group_type_builder(table.name).with_fields(columns).build()?);
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema, properties)?;
    let rows = table.rows();
    for begin in (0..rows).step_by(GROUP) {
        let range = begin..rows.min(begin + GROUP);
        let mut group = writer.next_row_group()?;
        for (_, column) in &table.columns {
            let mut next = group.next_column()?.expect("the schema has a column for each");
            match column {
                Column::Text(values) => {
                    let bytes: Vec<ByteArray> = values[range.clone()].iter().map(|text| (&**text).into()).collect();
                    next.typed::<ByteArrayType>().write_batch(&bytes, None, None)?;
                }
                Column::Whole(values) => {
                    let signed: Vec<i64> = values[range.clone()].iter().map(|value| *value as i64).collect();
                    next.typed::<Int64Type>().write_batch(&signed, None, None)?;
                }
                Column::Number(values) => {
                    next.typed::<DoubleType>().write_batch(&values[range.clone()], None, None)?;
                }
            }
            next.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn described(name: &str, column: &Column) -> Result<TypePtr> {
    let (physical, logical) = match column {
        Column::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Column::Whole(_) => (Physical::INT64, None),
        Column::Number(_) => (Physical::DOUBLE, None),
    };
    let built = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(built))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::super::tables::{Column, ResultTable};

    #[test]
    fn a_table_is_read_back_as_it_was() {
        let table = ResultTable {
            name: "queues",
            columns: vec![
                ("from", Column::Text(vec![Arc::from("s1:2"), Arc::from("höst, \"h1\"")])),
                ("waiting", Column::Whole(vec![7, u64::from(u32::MAX) + 1])),
                ("time_s", Column::Number(vec![0.5, -1e-9])),
            ],
        };
        let path = std::env::temp_dir().join(format!("triplane-{}.parquet", std::process::id()));
        super::write(&path, &table).expect("it can be written");
        let reader = SerializedFileReader::new(std::fs::File::open(&path).expect("it is there")).expect("a file");
        let rows: Vec<Vec<(String, Field)>> = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| {
                row.expect("a row").get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
            })
            .collect();
        std::fs::remove_file(&path).expect("it was there");
        let row = |from: &str, waiting, time| {
            vec![
                ("from".to_owned(), Field::Str(from.to_owned())),
                ("waiting".to_owned(), Field::Long(waiting)),
                ("time_s".to_owned(), Field::Double(time)),
            ]
        };
        assert_eq!(rows, [row("s1:2", 7, 0.5), row("höst, \"h1\"", 4_294_967_296, -1e-9)]);
    }
}
