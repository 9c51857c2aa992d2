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
    let many: String = (0..=MAX_WIDTH).map(|n| format!("1,c{n}\n")).collect();
    assert_eq!(table(&many), Err(DataError::TooManyClasses(4097)));
    assert!(matches!(Table::parse(b"1,2,\xff\n"), Err(DataError::Syntax(_))));
}

/// As spreadsheets and libraries of other countries and people write them.
#[test]
fn dialects_are_the_same_table() {
    let plain = table("1.5,2,cat\n3,4,ant\n5,6,cat\n").unwrap();
    for text in [
        "1.5;2;cat\n3;4;ant\n5;6;cat\n",
        "1,5;2;cat\n3;4;ant\n5;6;cat\n",
        "length;width;kind\n1,5;2,0;cat\n3,0;4,0;ant\n5,0;6,0;cat\n",
        "1.5\t2\tcat\n3\t4\tant\n5\t6\tcat\n",
        "a|b|c\n1.5|2|cat\n3|4|ant\n5|6|cat\n",
        // Of pandas: names that count, and an index with and without a name.
        "0,1,label\n1.5,2,cat\n3,4,ant\n5,6,cat\n",
        "0,1,2\n1.5,2,cat\n3,4,ant\n5,6,cat\n",
        ",a,b,label\n0,1.5,2,cat\n1,3,4,ant\n2,5,6,cat\n",
        ",0,1,2\n0,1.5,2,cat\n1,3,4,ant\n2,5,6,cat\n",
        "Unnamed: 0,a,b,label\n0,1.5,2,cat\n1,3,4,ant\n2,5,6,cat\n",
        "index,a,b,label\n1,1.5,2,cat\n2,3,4,ant\n3,5,6,cat\n",
    ] {
        assert_eq!(table(text).as_ref(), Ok(&plain), "{text:?}");
    }
    let classes = [("ant".to_owned(), 1), ("cat".to_owned(), 2)].into();
    assert_eq!(plain.census(), Census { rows: 3, columns: 2, classes });
    // Rows that look like such names: of a class that others have, and of a number that goes on with none.
    assert_eq!(table("0,0\n3,1\n5,1\n").unwrap().rows(), 3);
    assert_eq!(table("0,1,cat\n3,4,ant\n5,6,cat\n").unwrap().rows(), 3);
    // Few rows may be numbered by chance, and a name says that they are not.
    assert_eq!(table("0,7,cat\n1,4,ant\n2,6,cat\n").unwrap().width, 2);
    assert_eq!(table("index,a,c\n5,7,cat\n1,4,ant\n").unwrap().width, 2);
}

#[test]
fn what_people_should_look_at_again_is_refused() {
    let indexed =
        |name: &str| name.to_owned() + &(0..60).map(|n| format!("{n},{},{}\n", n * n, n % 2)).collect::<String>();
    assert_eq!(table(&indexed("")), Err(DataError::Index { name: String::new() }));
    assert_eq!(table(&indexed("day,size,kind\n")), Err(DataError::Index { name: "day".into() }));
    assert_eq!(table(&indexed("index,size,kind\n")).unwrap().width, 1);
    for (one, other) in [("0", "0.0"), ("DOG", "dog"), ("1", "1e0")] {
        let alike = Err(DataError::AlikeClasses(one.into(), other.into()));
        assert_eq!(table(&format!("1,2,{one}\n3,4,{other}\n5,6,c\n")), alike);
    }
    let prices: String = (0..40).map(|n| format!("{n},{}\n", f64::from(n) * 1.5)).collect();
    assert_eq!(table(&prices), Err(DataError::Measurement { distinct: 40, rows: 40 }));
    // So many digits, months or years are classes.
    let years: String = (0..400).map(|n| format!("{n},{}\n", 1990 + n % 30)).collect();
    assert_eq!(table(&years).unwrap().classes.len(), 30);
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
