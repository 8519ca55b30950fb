//! The changes of a lease: what is asked for, what was there before, and how that comes back.

use framegauge_drivers::host::settings::Setting;
use framegauge_drivers::host::settings::around::{Around, Difference};
use serde_json::{Value, json};

/// Settings and their values.
pub type Values = Vec<(Setting, String)>;

/// What each takes along is remembered by two processes that no limit of their caller's binds.
const MOST: usize = 1000;

/// A change of one setting.
pub struct Change {
    setting: Setting,
    before: String,
    /// What the group of changes that this one is the first of may take along.
    around: Option<Around>,
}

/// Reads what is there before a group of changes, behind those that there are; both processes of a lease do, before
/// anything is written.
pub fn before(values: &Values, changes: &mut Vec<Change>) -> Result<(), String> {
    let count = changes.len() + values.len();
    if count > MOST {
        return Err(format!("found {count} changes under one lease, expected at most {MOST}"));
    }
    let mut around = Around::read(values).map_err(|error| error.to_string())?;
    for (setting, _) in values {
        let before = setting.before()?;
        // Put back in the opposite order, the first is the last of them.
        changes.push(Change { setting: setting.clone(), before, around: around.take() });
    }
    Ok(())
}

/// Writes what is asked for: what each setting was and is.
pub fn write(values: &Values, changes: &[Change]) -> Result<Vec<Value>, String> {
    let mut held = Vec::new();
    for ((setting, value), change) in values.iter().zip(changes) {
        let now = setting.write(value).and_then(|()| setting.read()).map_err(|error| error.to_string())?;
        held.push(json!({"setting": setting.to_string(), "before": change.before, "now": now}));
    }
    Ok(held)
}

/// Puts changes back in the opposite order, and with each group what it has taken along; then everything is read again.
/// What is not as it was.
pub fn put_back(changes: &[Change]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for change in changes.iter().rev() {
        if !matches!(change.setting.read(), Ok(now) if now == change.before) {
            // What it refuses is read below.
            let _ = change.setting.write(&change.before);
        }
        differences.extend(change.around.iter().flat_map(Around::put_back));
    }
    for (place, change) in changes.iter().enumerate() {
        // Of several changes of a setting the oldest counts.
        if !changes[..place].iter().any(|older| older.setting == change.setting) {
            for difference in change.setting.differences(&change.before) {
                if !differences.contains(&difference) {
                    differences.push(difference);
                }
            }
        }
    }
    differences
}

/// How it went, as the pipe has it.
pub fn told(differences: &[Difference], failed: Option<&String>) -> Value {
    let first = differences.first().map(Difference::line);
    let mut answer = json!({"restored": differences.is_empty(), "failed": failed.or(first.as_ref())});
    if !differences.is_empty() {
        let rows = differences.iter().map(|row| {
            json!({"what": row.what, "found": row.found, "expected": row.expected, "commands": row.commands})
        });
        answer["differs"] = rows.collect();
    }
    answer
}
