// Package figure draws pictures of results for documents: heat maps, and lines over tokens, as
// PNG or SVG, for light and dark pages. They are legible at the width of 700 pixels, and their
// colours can be told apart by the colour-blind.
//
//	h := figure.HeatMap{Title: "passkey", X: []string{"2K", "4K"}, Y: []string{"10%"}, Values: [][]float64{{1, 0.5}}, High: 1}
//	err := h.Write(file, "png", figure.Light)
package figure
