export const getAirQualityTool = {
  name: 'get_air_quality',
  description: 'Air quality index (AQI) of one city.',
  category: 'read',
  version: '1.0.0',
  status: 'active',
  schema: {
    city: { type: 'string' },
  },
  execute: async ({ city }: { city: string }) => fetch(`https://weather.example/air/${city}`),
};
