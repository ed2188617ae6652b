//! Draws small grey pictures with half-block characters: two pixels per character.

/// Draws pictures side by side, each of `height × width` values in [0, 1].
///
/// Shades are the characters ` ░▒▓█`. Pictures of only black and white use `▀▄█`, at twice the
/// resolution.
pub(crate) fn side_by_side(pictures: &[Vec<f32>], (height, width): (usize, usize)) -> String {
    let binary = pictures.iter().flatten().all(|&x| x == 0.0 || x == 1.0);
    let mut text = String::new();
    for y in (0..height).step_by(2) {
        let line: Vec<String> = pictures
            .iter()
            .map(|picture| {
                let at = |y: usize, x: usize| if y < height { picture[y * width + x] } else { 0.0 };
                (0..width).map(|x| character(at(y, x), at(y + 1, x), binary)).collect()
            })
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Draws pictures in lines of at most 100 columns, each under its caption if there are captions.
pub(crate) fn gallery(pictures: &[Vec<f32>], captions: Option<&[&str]>, shape: (usize, usize)) -> String {
    let width = shape.1 + 2;
    let abreast = (100 / width).max(1);
    let mut text = String::new();
    for (k, group) in pictures.chunks(abreast).enumerate() {
        text.push('\n');
        if let Some(captions) = captions {
            let names =
                captions[k * abreast..].iter().take(group.len()).map(|name| format!("{name:<width$}"));
            text.push_str(names.collect::<String>().trim_end());
            text.push('\n');
        }
        text.push_str(&side_by_side(group, shape));
    }
    text
}

fn character(upper: f32, lower: f32, binary: bool) -> char {
    match (binary, upper > 0.5, lower > 0.5) {
        (true, true, true) => '█',
        (true, true, false) => '▀',
        (true, false, true) => '▄',
        (true, false, false) => ' ',
        (false, ..) => {
            [' ', '░', '▒', '▓', '█'][((upper + lower) / 2.0 * 4.0).round().clamp(0.0, 4.0) as usize]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_broken_into_lines_under_their_captions() {
        let pictures = vec![vec![1.0; 2 * 40]; 3];
        let text = gallery(&pictures, Some(&["a", "b", "c"]), (2, 40));
        let bar = "█".repeat(40);
        assert_eq!(text, format!("\na{}b\n{bar}  {bar}\n\nc\n{bar}\n", " ".repeat(41)));
        assert_eq!(gallery(&pictures[..1], None, (2, 40)), format!("\n{bar}\n"));
    }

    #[test]
    fn two_rows_make_one_line() {
        let picture = vec![1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0];
        assert_eq!(side_by_side(std::slice::from_ref(&picture), (3, 3)), "▀▄█\n▀\n");
        let grey: Vec<f32> = picture.iter().map(|x| x / 2.0).collect();
        assert_eq!(side_by_side(&[grey.clone(), grey], (3, 3)), "░░▒  ░░▒\n░    ░\n");
    }
}
