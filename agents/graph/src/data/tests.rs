use super::*;

fn table(csv: &str) -> Result<Table, DataError> {
    Table::parse(csv.as_bytes())
}

#[test]
fn reads_with_and_without_header() {
    let plain = table("1,2,cat\n3,4,ant\n").unwrap();
    assert_eq!((plain.width, plain.rows()), (2, 2));
    assert_eq!(
        (plain.labels.as_slice(), plain.classes.as_slice()),
        (&[1, 0][..], &["ant".to_owned(), "cat".into()][..])
    );
    assert_eq!(table("length,width,kind\n1,2,cat\n3,4,ant\n").unwrap(), plain);
    assert_eq!(table("1, 2 ,cat\r\n3,4,ant").unwrap(), plain);
    // As spreadsheets write it: byte order mark, quotes, a blank line at the end.
    assert_eq!(table("\u{feff}1,2,\"cat\"\r\n3,4,ant\r\n\r\n").unwrap(), plain);
}

#[test]
fn refuses_what_it_cannot_use() {
    assert_eq!(table(""), Err(DataError::TooFewRows(0)));
    assert_eq!(table("a,b,c\n1,2,x\n"), Err(DataError::TooFewRows(1)));
    assert_eq!(table("1\n2\n"), Err(DataError::Columns(1)));
    assert_eq!(table("1,2,a\n1,b\n"), Err(DataError::Width { row: 2, expected: 3, actual: 2 }));
    let text = DataError::NotANumber { row: 3, column: 2, text: "?".into() };
    assert_eq!(table("x,y,c\n1,2,a\n1,?,b\n"), Err(text));
    // A first row that is half numbers is no header.
    assert_eq!(table("1,y,c\n1,2,a\n"), Err(DataError::NotANumber { row: 1, column: 2, text: "y".into() }));
    assert!(matches!(table("1,NaN,a\n1,2,b\n"), Err(DataError::NotFinite { row: 1, column: 2, .. })));
    assert!(matches!(table("1,2,a\n1,inf,b\n"), Err(DataError::NotFinite { row: 2, column: 2, .. })));
    assert_eq!(table("1,2,\n1,2,b\n"), Err(DataError::NoClass { row: 1 }));
    assert_eq!(table("1,2,a\n1,3,a\n"), Err(DataError::OneClass("a".into())));
    let many: String = (0..=MAX_WIDTH).map(|n| format!("1,{n}\n")).collect();
    assert_eq!(table(&many), Err(DataError::TooManyClasses(4097)));
    assert!(matches!(Table::parse(b"1,2,\xff\n"), Err(DataError::Syntax(_))));
}

#[test]
fn split_is_keyed_and_complete() {
    let csv: String = (0..50).map(|n| format!("{n},{}\n", n % 3)).collect();
    let table = table(&csv).unwrap();
    let one = table.split(16, 1).unwrap();
    assert_eq!(one, table.split(16, 1).unwrap());
    assert_ne!(one, table.split(16, 2).unwrap());
    assert_eq!((one.training.features.ty().dims(), one.held_out.features.ty().dims()), (&[40, 1][..], &[10, 1][..]));
    // Scaling is strictly monotone here, so 50 distinct values stay distinct: no row is lost or taken twice.
    let mut seen = one.training.features.mantissas().to_vec();
    seen.extend(one.held_out.features.mantissas().to_vec());
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 50);
}

#[test]
fn columns_are_standardised_clamped_and_constants_vanish() {
    let mut csv: String = (0..99).map(|n| format!("{},7,{}\n", n % 2, n % 2)).collect();
    csv.push_str("1000,7,1\n");
    let data = table(&csv).unwrap().split(8, 3).unwrap();
    let ty = data.training.features.ty();
    assert_eq!((ty.bits(), ty.exponent()), (8, 5));
    let all: Vec<i64> = [&data.training, &data.held_out].iter().flat_map(|s| s.features.mantissas().to_vec()).collect();
    assert!(all.iter().skip(1).step_by(2).all(|m| *m == 0));
    assert_eq!(all.iter().max(), Some(&127));
}
