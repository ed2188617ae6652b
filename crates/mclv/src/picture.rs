//! Arrange pictures in a grid and write it as a PNG.

use crate::data::Rows;
use crate::{Error, Result};

/// The approximate longer side, in pixels, to which small pictures are enlarged by a whole number.
const SIDE: usize = 56;

/// The grey between pictures.
const GAP: u8 = 96;

/// The largest number of pixels of a grid. A larger one may not fit into memory.
const MAX_PIXELS: usize = 1 << 28;

/// Returns the bytes of a greyscale PNG that shows the rows of `images` in a grid.
///
/// Each row is a picture of `(height, width)` values, 0 black and 1 white. The grid has `n_columns`
/// columns and is filled row by row, with a grey line between pictures.
///
/// ```
/// use mclv::{bits::BitRows, data::Rows, picture};
/// let images = Rows::Bits(BitRows::zeros(5, 64));
/// let png = picture::grid(&images, (8, 8), 3)?;
/// assert!(png.starts_with(b"\x89PNG"));
/// # Ok::<(), mclv::Error>(())
/// ```
///
/// # Errors
/// If there is nothing to show, if the shape is not that of the rows, or if the grid would be too
/// large.
pub fn grid(images: &Rows, (height, width): (usize, usize), n_columns: usize) -> Result<Vec<u8>> {
    check_shape((height, width), images.n_columns())?;
    if images.n_rows() == 0 || n_columns == 0 {
        return Err(Error::Empty { what: "the grid of pictures".into(), cure: "show at least one" });
    }
    let n_columns = n_columns.min(images.n_rows());
    let scale = (SIDE / height.max(width)).max(1);
    // One line around and between all pictures.
    let (cell_height, cell_width) = (height * scale + 1, width * scale + 1);
    let total = |cell: usize, n: usize| cell.checked_mul(n).and_then(|x| x.checked_add(1));
    let size = total(cell_height, images.n_rows().div_ceil(n_columns)).zip(total(cell_width, n_columns));
    let Some((total_height, total_width)) =
        size.filter(|(h, w)| h.checked_mul(*w).is_some_and(|n| n <= MAX_PIXELS))
    else {
        return Err(Error::InvalidSetting {
            name: "number of pictures",
            value: images.n_rows().to_string(),
            cure: "show fewer in one .png, or save the values as .npy",
        });
    };
    let mut pixels = vec![GAP; total_height * total_width];
    for r in 0..images.n_rows() {
        let (top, left) = (1 + r / n_columns * cell_height, 1 + r % n_columns * cell_width);
        for y in 0..height * scale {
            let line = &mut pixels[(top + y) * total_width + left..][..width * scale];
            for (x, pixel) in line.iter_mut().enumerate() {
                let value = images.get(r, y / scale * width + x / scale);
                *pixel = (value.clamp(0.0, 1.0) * 255.0).round() as u8;
            }
        }
    }
    Ok(png((total_height, total_width), ::png::ColorType::Grayscale, &pixels))
}

/// Returns the bytes of a colour PNG of `(height, width)` pixels, row by row: red, green, blue.
///
/// # Errors
/// If the pixels do not fill the shape.
pub fn rgb_png(pixels: &[[u8; 3]], shape: (usize, usize)) -> Result<Vec<u8>> {
    check_shape(shape, pixels.len())?;
    Ok(png(shape, ::png::ColorType::Rgb, pixels.as_flattened()))
}

/// Rejects a shape that `n_units` values do not fill.
///
/// # Errors
/// If `height × width` is not `n_units`.
pub fn check_shape((height, width): (usize, usize), n_units: usize) -> Result<()> {
    match height.checked_mul(width) {
        Some(n) if n == n_units && n > 0 => Ok(()),
        n => Err(Error::ShapeMismatch {
            what: format!("values of a picture of {height} × {width}"),
            expected: n_units,
            got: n.unwrap_or(usize::MAX),
        }),
    }
}

fn png((height, width): (usize, usize), colours: ::png::ColorType, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(colours);
    encoder.set_depth(::png::BitDepth::Eight);
    encoder.set_compression(::png::Compression::Balanced);
    let write = |encoder: ::png::Encoder<'_, &mut Vec<u8>>| {
        let mut writer = encoder.write_header()?;
        writer.write_image_data(pixels)?;
        writer.finish()
    };
    write(encoder).expect("memory takes all that is written to it");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::BitRows;
    use crate::data::RealRows;

    fn decode(bytes: &[u8]) -> (usize, usize, Vec<u8>) {
        let mut reader = ::png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(info.color_type, ::png::ColorType::Grayscale);
        (info.height as usize, info.width as usize, pixels)
    }

    #[test]
    fn every_value_is_where_it_belongs() {
        // Three pictures of 30 × 40, not enlarged: value k of picture r is (r + k) mod 5 quarters.
        let value = |r: usize, k: usize| ((r + k) % 5) as f32 / 4.0;
        let values = (0..3).flat_map(|r| (0..1200).map(move |k| value(r, k))).collect();
        let images = Rows::Reals(RealRows::new(1200, values));
        let (height, width, pixels) = decode(&grid(&images, (30, 40), 2).unwrap());
        assert_eq!((height, width), (2 * 31 + 1, 2 * 41 + 1));
        for y in 0..height {
            for x in 0..width {
                let r = y.saturating_sub(1) / 31 * 2 + x.saturating_sub(1) / 41;
                let (py, px) = ((y + 30) % 31, (x + 40) % 41);
                let expected = if py == 30 || px == 40 || r > 2 {
                    GAP
                } else {
                    (value(r, py * 40 + px) * 255.0).round() as u8
                };
                assert_eq!(pixels[y * width + x], expected, "({y}, {x})");
            }
        }
    }

    #[test]
    fn small_pictures_are_enlarged() {
        let images = Rows::Bits(BitRows::pack(4, &[1, 0, 0, 1], |&x| x == 1));
        let (height, width, pixels) = decode(&grid(&images, (2, 2), 9).unwrap());
        assert_eq!((height, width), (58, 58));
        assert!(pixels[59] == 255 && pixels[59 + 27] == 255 && pixels[59 + 28] == 0);
    }

    #[test]
    fn colours_are_kept() {
        let pixels = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 8, 7], [0; 3], [255; 3]];
        let bytes = rgb_png(&pixels, (2, 3)).unwrap();
        let mut reader = ::png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut read = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut read).unwrap();
        assert_eq!((info.height, info.width, info.color_type), (2, 3, ::png::ColorType::Rgb));
        assert_eq!(read, pixels.as_flattened());
        assert!(rgb_png(&pixels, (2, 2)).unwrap_err().to_string().contains("expected 6, got 4"));
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        let images = Rows::Bits(BitRows::zeros(2, 6));
        let error = |images: &Rows, shape, n| grid(images, shape, n).unwrap_err().to_string();
        assert!(error(&images, (2, 2), 1).contains("picture of 2 × 2: expected 6, got 4"));
        assert!(error(&images, (usize::MAX, 2), 1).contains("expected 6"));
        assert!(error(&images, (2, 3), 0).contains("is empty"));
        assert!(error(&Rows::Bits(BitRows::zeros(0, 6)), (2, 3), 1).contains("is empty"));
        let many = Rows::Bits(BitRows::zeros(200_000, 6));
        assert!(error(&many, (2, 3), 400).contains("show fewer in one .png"));
    }
}
