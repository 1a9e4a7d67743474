// Placeholder until the converter lands.
