//! What templates call that keeps something: macros that collect arguments, `cycler` and `joiner`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use minijinja::value::{Enumerator, Kwargs, Object, ObjectRepr, Rest, Tuple, Value, from_args};
use minijinja::{Error, ErrorKind, State};

use super::refused;

/// A macro that takes more arguments than it names, as Jinja's do that speak of `varargs` or `kwargs`.
#[derive(Debug)]
struct Collecting {
    /// With what it collects as its last parameters.
    within: Value,
    parameters: Vec<String>,
    varargs: bool,
    kwargs: bool,
}

/// A macro of which the last parameters are `varargs`, `kwargs`, or both.
pub(super) fn collecting(within: Value, varargs: bool, kwargs: bool) -> Result<Value, Error> {
    let parameters = within.get_attr("arguments")?;
    let own = parameters.len().unwrap_or(0).saturating_sub(usize::from(varargs).saturating_add(kwargs.into()));
    let parameters = parameters.try_iter()?.take(own).map(|name| name.to_string()).collect();
    Ok(Value::from_object(Collecting { within, parameters, varargs, kwargs }))
}

impl Object for Collecting {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "arguments" => Some(Value::from(Tuple::from(self.parameters.iter().map(Value::from).collect::<Vec<_>>()))),
            "catch_varargs" => Some(self.varargs.into()),
            "catch_kwargs" => Some(self.kwargs.into()),
            other => self.within.get_attr(other).ok().filter(|value| !value.is_undefined()),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["name", "arguments", "catch_kwargs", "catch_varargs", "caller"])
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let (placed, named) = match args.split_last() {
            Some((last, placed)) if last.is_kwargs() => (placed, Some(last)),
            _ => (args, None),
        };
        let (mut given, mut more) = (Vec::new(), Vec::new());
        let called = self.within.get_attr("caller")?.is_true();
        for key in named.map(Value::try_iter).transpose()?.into_iter().flatten() {
            let value = named.map_or(Ok(Value::UNDEFINED), |named| named.get_item(&key))?;
            let name = key.to_string();
            match self.parameters.iter().position(|parameter| *parameter == name) {
                Some(place) if place >= placed.len() => given.push((name, value)),
                None if called && name == "caller" => given.push((name, value)),
                _ if self.kwargs => more.push((name, value)),
                _ => return Err(Error::new(ErrorKind::TooManyArguments, format!("no keyword argument '{name}'"))),
            }
        }
        let (own, rest) = placed.split_at(placed.len().min(self.parameters.len()));
        if self.varargs {
            given.push(("varargs".into(), Tuple::from(rest.to_vec()).into()));
        } else if !rest.is_empty() {
            let most = self.parameters.len();
            return Err(Error::new(ErrorKind::TooManyArguments, format!("no more than {most} arguments")));
        }
        if self.kwargs {
            given.push(("kwargs".into(), Value::from_pairs(more)));
        }
        let named = Value::from(given.into_iter().collect::<Kwargs>());
        let args: Vec<Value> = own.iter().cloned().chain([named]).collect();
        self.within.call(state, &args)
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<Macro '{}'>", self.within.get_attr("name").unwrap_or_default())
    }
}

/// `cycler(ITEM, …)`: the items in turn, over and over.
#[derive(Debug)]
struct Cycler {
    items: Vec<Value>,
    place: AtomicUsize,
}

pub(super) fn cycler(items: Rest<Value>) -> Result<Value, Error> {
    if items.is_empty() {
        return Err(refused("at least one item has to be provided"));
    }
    Ok(Value::from_object(Cycler { items: items.0, place: AtomicUsize::new(0) }))
}

impl Cycler {
    fn current(&self) -> Option<Value> {
        self.items.get(self.place.load(Ordering::Relaxed)).cloned()
    }
}

impl Object for Cycler {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if key.as_str() == Some("current") { self.current() } else { None }
    }

    fn call_method(self: &Arc<Self>, _state: &mut State<'_, '_>, method: &str, args: &[Value]) -> Result<Value, Error> {
        let () = from_args(args)?;
        match method {
            "next" => {
                let next = self.current().unwrap_or_default();
                let place = self.place.load(Ordering::Relaxed).saturating_add(1);
                self.place.store(if place < self.items.len() { place } else { 0 }, Ordering::Relaxed);
                Ok(next)
            }
            "reset" => {
                self.place.store(0, Ordering::Relaxed);
                Ok(().into())
            }
            _ => Err(ErrorKind::UnknownMethod.into()),
        }
    }
}

/// `joiner(SEPARATOR)`: nothing when it is called first, then the separator.
#[derive(Debug)]
struct Joiner {
    separator: Value,
    used: AtomicBool,
}

pub(super) fn joiner(separator: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let separator = separator.or(options.get("sep")?).unwrap_or_else(|| ", ".into());
    options.assert_all_used()?;
    Ok(Value::from_object(Joiner { separator, used: AtomicBool::new(false) }))
}

impl Object for Joiner {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let () = from_args(args)?;
        Ok(if self.used.swap(true, Ordering::Relaxed) { self.separator.clone() } else { "".into() })
    }
}
