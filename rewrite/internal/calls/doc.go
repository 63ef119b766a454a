// Package calls inlines the calls of a model's own functions. Attention may stand in such
// functions, or be made of calls of them; analysis sees through them when they are inlined.
// Calls of which nothing was replaced are folded again, and stand in the result as they stood before.
package calls
