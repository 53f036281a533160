/** The media type of a palette entry that is dragged: `section/kind`. */
export const DRAGGED_KIND = "application/x-auroral-kind";
