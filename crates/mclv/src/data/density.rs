//! List the binary sets that papers on density estimation compare models on.

use super::named::{Content, Holds, KnownFile, Mirror, NamedSet};

/// A set with a table for each part, from the public collection of Lowd and Davis (2010), Van
/// Haaren and Davis (2012), and Larochelle and Murray (2011). Each value and the sign after it take
/// two bytes.
macro_rules! tables {
    ($name:literal, $what:literal, $n_columns:literal, $($part:ident $n_rows:literal $sha256:literal,)*) => {
        NamedSet {
            name: $name,
            description: concat!($what, " (collection DEBD)"),
            folder: "density",
            n_rows: [$($n_rows),*],
            n_columns: $n_columns,
            content: Content::Tables([$(KnownFile {
                name: concat!($name, ".", stringify!($part), ".data"),
                n_bytes: 2 * $n_rows * $n_columns,
                sha256: $sha256,
            }),*]),
            mirrors: &[Mirror {
                url: concat!(
                    "https://raw.githubusercontent.com/arranger1044/DEBD/",
                    "850908666388f1b1c766a304b37dae14613f1e51/datasets/",
                    $name,
                ),
                holds: Holds::Plain,
            }],
            npm_package: None,
            system_folder: None,
        }
    };
}

/// The sets.
pub(super) static SETS: [NamedSet; 11] = [
    tables!(
        "nltcs",
        "abilities of elderly people",
        16,
        train 16_181 "e547a7aedad1dd2f7177030881ab1b92c7e24ae5464c71a0f1f89daecaf52b30",
        valid 2_157 "93bbbf5c6febdc9bc6e5b5bfab636f4dc0685ab2896d24b23dd267794c3bfcf6",
        test 3_236 "f9ffa6b74b27dc03bee3203d157ee31079e80b13be40d0c0093d635c25aed523",
    ),
    tables!(
        "plants",
        "plants and the regions where they grow",
        69,
        train 17_412 "1fb1219ff94068d12a563f9e81f8889a1885f41e867884cff608669300c6848f",
        valid 2_321 "47834ed318b2d74f48e4b083226ef47fd446d41986012ceae19d230574821b34",
        test 3_482 "95f53c033cd1d86467aec2610dc5bfe014534206c2da4919f73bcab246ab8755",
    ),
    tables!(
        "baudio",
        "musicians that people listen to",
        100,
        train 15_000 "b1ec73f4aa9d4ce48b465ded865cc3d22b3f68cf6258f9e15fbef8902138add1",
        valid 2_000 "7164d8a4943f74953f0e982002d84693fdf483e17f69e7407dc939c5ce5622fe",
        test 3_000 "1474f3206f1f35e099803a0f40b0cd209bdc8d787825095ef6cb23fd87ed0d05",
    ),
    tables!(
        "jester",
        "jokes that people like",
        100,
        train 9_000 "dd93578c3359d5b234bb278bf0901c5215d83b910f7d51d7c91951a0a4c244cd",
        valid 1_000 "91df833941e189265345898d3f63211560c2456df599f34beee8e95381ee7524",
        test 4_116 "346044fb561cf18f284f7e9d5896178b03048991b6ebb6f7482885fccbc16082",
    ),
    tables!(
        "bnetflix",
        "films that people rated",
        100,
        train 15_000 "73c87cf0635ec734cc0726a5c644b904ff33e81ea51f1049db0e77b787ebad7c",
        valid 2_000 "7f0a3e597c6f305f707f9ecd2b2aa523c576cdb17fdc5d902fc832ebea5163de",
        test 3_000 "af73990782fd2f146d96059855c4f3bbb6a7a7caefc417ff620a3ed1415a2395",
    ),
    tables!(
        "accidents",
        "traffic accidents",
        111,
        train 12_758 "a76648cf00772c275b4277b21d858e235e3c6d3c5ef30beeb4958189b6bed21c",
        valid 1_700 "fd3a80a0f411f157cf3772a057d26980bb166cb89b10cafb818a53f1ec30d46d",
        test 2_551 "df3f1b6c035bf3e306a7d7127320e479d2546ce14a5d6d3043e6be0925b8b414",
    ),
    tables!(
        "mushrooms",
        "properties of mushrooms",
        112,
        train 2_000 "465c712c066bbbee3ccceded24bbe42b4c379df67b524e28cce9bf3a8b83f27b",
        valid 500 "5a067e6854df71623415e6adc8e913cbff766637a324788882ba800907aa5385",
        test 5_624 "313c5f04b5d0a18bee2f2ffa264be265d09f5362aad6f714637acd9552f81aa0",
    ),
    tables!(
        "pumsb_star",
        "answers to a census",
        163,
        train 12_262 "27e610b5f9f507f94ebf8a227f8b96cc59d7eed51e06ee5d2fe8353afbc1524c",
        valid 1_635 "6a491d1ea64eb0249dddd168fdddeef88aa21001a933eb7309603b6466187af8",
        test 2_452 "b2da195314ac17f9d8d171743c5f98a28ea9583332a52d34aa228ff2e11aa8e7",
    ),
    tables!(
        "dna",
        "splice junctions of DNA",
        180,
        train 1_600 "bb8de0ca4b6ad9b610036b7a302962ebecd4b504354b14c02c7d0bee48d207d9",
        valid 400 "4b0fc89cda5eaf5c75926e281afb6af99de194a546070d5b81b524ba251f4f3f",
        test 1_186 "fec3ae7b26804020a9c43c99828441c5e08bb76b23719368a74ad2b09af99100",
    ),
    tables!(
        "nips",
        "words of papers",
        500,
        train 400 "4d744cb1f2c725405bff6ef6878df06eafbbc2a91f0510e0f3d8a508b05ec7bb",
        valid 100 "b06acd8e6a701d63d4e58b5076c11c59bcd0343fb9b1fbb5997459d3e6b8ca96",
        test 1_240 "48711bdaffbd43aa439679785e19d9cc80c64a157fa84eadc5dce60ee4edf7bc",
    ),
    NamedSet {
        name: "genome805",
        description: "human haplotypes, 805 sites (1000 Genomes; Yelmen et al. 2021)",
        folder: "density",
        n_rows: [4_006, 500, 502],
        n_columns: 805,
        content: Content::Pairs(KnownFile {
            name: "genome805.data",
            n_bytes: 2 * 5_008 * 805,
            sha256: "9d85794a3bb38fd41d8973ce817daf28c30e3c8bcddcdb9a2783e8b6e48913fd",
        }),
        mirrors: &[Mirror {
            url: "https://raw.githubusercontent.com/dianamJLAB/DS6050/main/artificial_genomes/\
                  1000G_real_genomes/805_SNP_1000G_real.hapt.zip",
            holds: Holds::Haplotypes,
        }],
        npm_package: None,
        system_folder: None,
    },
];

/// Turns a zip archive of a `.hapt` file into a table of zeros and ones. A line of the file has two
/// identifiers and then the alleles of a haplotype, separated by spaces.
#[cfg(feature = "fetch")]
pub(super) fn alleles(archive: Vec<u8>) -> Result<Vec<u8>, String> {
    use std::io::{Cursor, Read};
    /// The most bytes of the file that are read.
    const LIMIT: u64 = 100_000_000;
    let failed = |error: &dyn std::fmt::Display| format!("is not a zip archive of haplotypes ({error})");
    let mut archive = zip::ZipArchive::new(Cursor::new(archive)).map_err(|e| failed(&e))?;
    let is_wanted = |name: &str| name.ends_with(".hapt") && !name.starts_with("__MACOSX");
    let name = archive.file_names().filter_map(Result::ok).find(|name| is_wanted(name)).map(String::from);
    let name = name.ok_or_else(|| failed(&"it has no .hapt file"))?;
    let mut text = String::new();
    let file = archive.by_name(&name).map_err(|e| failed(&e))?;
    file.take(LIMIT).read_to_string(&mut text).map_err(|e| failed(&e))?;
    let mut table = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        for (k, allele) in line.split_ascii_whitespace().skip(2).enumerate() {
            if k > 0 {
                table.push(b',');
            }
            table.extend_from_slice(allele.as_bytes());
        }
        table.push(b'\n');
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of rows and columns decide the length of the files, and names belong to one set.
    #[test]
    fn files_hold_the_rows_that_are_promised() {
        for set in &SETS {
            let n_bytes: u64 = set.files().iter().map(|file| file.n_bytes).sum();
            assert_eq!(
                n_bytes,
                2 * (set.n_rows.iter().sum::<usize>() * set.n_columns) as u64,
                "{}",
                set.name
            );
            for file in set.files() {
                assert!(file.name.starts_with(&format!("{}.", set.name)) && file.sha256.len() == 64);
            }
        }
    }

    #[cfg(feature = "fetch")]
    #[test]
    fn alleles_come_after_two_identifiers() {
        use std::io::{Cursor, Write};
        use zip::write::SimpleFileOptions;
        let zip = |entries: &[(&str, &str)]| {
            let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
            for (name, text) in entries {
                zip.start_file(*name, SimpleFileOptions::default()).unwrap();
                zip.write_all(text.as_bytes()).unwrap();
            }
            zip.finish().unwrap().into_inner()
        };
        let text = "Real HG1_A 0 1 1\nReal HG1_B 1 0 0 \n\n";
        let archive = zip(&[("__MACOSX/._x.hapt", "junk"), ("folder/x.hapt", text)]);
        assert_eq!(alleles(archive).unwrap(), b"0,1,1\n1,0,0\n");
        assert!(alleles(zip(&[("x.txt", text)])).unwrap_err().contains("no .hapt file"));
        assert!(alleles(b"junk".to_vec()).unwrap_err().contains("not a zip archive"));
    }
}
