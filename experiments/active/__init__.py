"""Questions: how good labels are after so many answers, by which strategy."""
