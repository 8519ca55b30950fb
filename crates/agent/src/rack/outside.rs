//! What a rack must not change: the settings of the machine that its hosts are on.

use crate::pipe::message::Failure;
use framegauge_drivers::host::settings::Setting;

/// The values of some sysctls outside the hosts, before anything is set in them.
pub struct Outside {
    before: Vec<(Setting, String)>,
}

impl Outside {
    /// Reads the sysctls of these names, as far as the machine has them.
    pub fn read<'a>(names: impl Iterator<Item = &'a String>) -> Self {
        let settings = names.filter_map(|name| Setting::parse(&format!("sysctl:{name}")).ok());
        let before =
            settings.filter_map(|setting| setting.read().ok().map(|value| (setting, value))).collect();
        Self { before }
    }

    /// Puts back what has changed, if anything has: a kernel may keep for the whole machine what others keep for each
    /// network namespace. That is a refusal.
    pub fn put_back(&self) -> Result<(), Failure> {
        let mut changed = Ok(());
        for (setting, value) in &self.before {
            if setting.read().is_ok_and(|now| now != *value) {
                setting.write(value)?;
                changed = Err(Failure::refused(
                    &format!("{setting}, which this kernel keeps for the whole machine"),
                    "another value in the hosts of a rack",
                    "what it is outside",
                ));
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framegauge_drivers::own;

    #[test]
    fn what_has_changed_is_put_back_and_refused() {
        let look = || {
            let name = "net.ipv4.tcp_fin_timeout".to_string();
            let outside = Outside::read([&name, &"net.ipv4.no_such_thing".to_string()].into_iter());
            assert!(outside.put_back().is_ok());
            let (setting, before) = &outside.before[0];
            setting.write("17")?;
            let refused = outside.put_back().expect_err("it has changed");
            assert!(refused.message.contains("for the whole machine"), "{}", refused.message);
            assert_eq!(setting.read()?, *before);
            Ok(())
        };
        if let Err(error) = own::apart(None, look) {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
            eprintln!("not run: needs network namespaces: {error}");
        }
    }
}
