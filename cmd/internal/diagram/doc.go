// Package diagram makes figures of what methods mean: wavelengths, distances, masks, how scores
// decay, what encodings add to them, and where a model's attention goes. All numbers come from package rope, its reference and
// the model itself; package figure draws them.
//
//	f, err := diagram.Positions(attention, 8192) // who is seen at which distance
//	err = f.Write(file, "png", figure.Light)
package diagram
