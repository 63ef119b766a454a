// Package links opens the files of a model's folder. Such a folder comes from other people, and a link in it may lead to
// any file of the one who opens it.
package links
