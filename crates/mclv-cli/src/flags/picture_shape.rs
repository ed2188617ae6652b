//! The flag that gives the shape of pictures.

use clap::Args;

/// Height and width of pictures.
#[derive(Args)]
pub(crate) struct PictureShape {
    /// Height and width of pictures, such as 28x28 [default: the shape recorded in the model
    /// file, or the shape of the data]
    #[arg(long, value_name = "HxW", value_parser = parse_shape)]
    pub(crate) shape: Option<(usize, usize)>,
}

/// Height and width from `28x28`.
fn parse_shape(text: &str) -> Result<(usize, usize), String> {
    let size = |text: &str| text.trim().parse().ok().filter(|&n: &usize| n > 0);
    text.split_once(['x', 'X', '×'])
        .and_then(|(height, width)| size(height).zip(size(width)))
        .ok_or_else(|| "not a shape; write height and width, such as 28x28".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_height_and_width() {
        assert_eq!(parse_shape("28x20"), Ok((28, 20)));
        for text in ["28", "0x3", "28x28x1", "axb", "-1x4", ""] {
            assert!(parse_shape(text).is_err(), "{text}");
        }
    }
}
