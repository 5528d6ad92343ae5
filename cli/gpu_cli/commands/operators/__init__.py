"""`gpu ops`: what operators do in their week. One module for each subject."""
