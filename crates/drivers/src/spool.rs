//! Bulk records go into Arrow IPC files without a name, read after the run.

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema};
use framegauge_linux::{OsError, Result, files};
use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A column of records.
pub enum Column {
    /// Numbers with a fraction; a NaN is written as null.
    Float(Vec<f64>),
    /// Counts.
    Long(Vec<u64>),
    /// Small counts.
    Word(Vec<u32>),
    /// Names.
    Text(Vec<String>),
}

impl Column {
    fn array(self) -> (DataType, ArrayRef) {
        match self {
            Self::Float(values) => {
                let array: Float64Array =
                    values.into_iter().map(|value| (!value.is_nan()).then_some(value)).collect();
                (DataType::Float64, Arc::new(array))
            }
            Self::Long(values) => (DataType::UInt64, Arc::new(UInt64Array::from(values))),
            Self::Word(values) => (DataType::UInt32, Arc::new(UInt32Array::from(values))),
            Self::Text(values) => (DataType::Utf8, Arc::new(StringArray::from(values))),
        }
    }
}

/// Writes `columns`, all of the same length, as one Arrow IPC file without a name.
pub fn write(columns: Vec<(&str, Column)>) -> Result<File> {
    let operation = || format!("write a file without a name in {}", std::env::temp_dir().display());
    let failed = |error: arrow_schema::ArrowError| OsError {
        operation: operation(),
        source: match error {
            arrow_schema::ArrowError::IoError(_, source) => source,
            other => std::io::Error::other(other),
        },
    };
    let file = files::unnamed()?;
    let (fields, arrays): (Vec<_>, Vec<_>) = columns
        .into_iter()
        .map(|(name, column)| {
            let (kind, array) = column.array();
            (Field::new(name, kind, true), array)
        })
        .unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(failed)?;
    let handle = file.try_clone().map_err(|source| OsError { operation: operation(), source })?;
    let mut writer = FileWriter::try_new(BufWriter::new(handle), &schema).map_err(failed)?;
    writer.write(&batch).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file)
}

/// The spools that an agent holds, by number.
#[derive(Default)]
pub struct Spools {
    next: AtomicU64,
    files: Mutex<HashMap<u64, Arc<File>>>,
}

impl Spools {
    /// Keeps a file; returns its number.
    pub fn keep(&self, file: File) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        self.lock().insert(number, Arc::new(file));
        number
    }

    /// The file with that number.
    pub fn get(&self, number: u64) -> Option<Arc<File>> {
        self.lock().get(&number).cloned()
    }

    /// Forgets a file; false if there was none.
    pub fn forget(&self, number: u64) -> bool {
        self.lock().remove(&number).is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<File>>> {
        self.files.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Up to `length` bytes at `offset` of a file, and its size.
pub fn read_at(file: &File, offset: u64, length: usize) -> Result<(Vec<u8>, u64)> {
    files::read_at(file, offset, length)
}
