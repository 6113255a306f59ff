export default { test: { reporters: [
